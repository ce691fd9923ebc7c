// Package wire is what a supervisor and its children say to each other: one JSON object per line, over
// two pipes. Neither side imports the other; both import this.
package wire

import (
	"strconv"
	"time"

	"queuekeeper/config"
	"queuekeeper/jobs"
)

// The descriptors a child finds its pipes at.
const (
	ControlFD = 3 // the child reads Settings, then Controls; end of file means the supervisor is gone
	StatusFD  = 4 // the child writes Statuses
	CrashFD   = 5 // the Go runtime of the child writes why it dies: a panic, no memory
)

// MarkVariable is in the environment of a child and of every command it starts, and tells whose they are.
const MarkVariable = "QUEUEKEEPER_CHILD"

// Mark is the entry of MarkVariable for the n-th child of a queue of a supervisor.
func Mark(supervisor string, n int) string {
	return MarkVariable + "=" + supervisor + "/" + strconv.Itoa(n)
}

// Settings is the first line a supervisor sends to a new child: everything the child needs, secrets included.
type Settings struct {
	Worker          config.Worker `json:"worker"`
	DatabaseURL     string        `json:"database_url"`
	Schema          string        `json:"schema"` // "": where the connection's search_path points
	Lease           time.Duration `json:"lease"`
	ShutdownTimeout time.Duration `json:"shutdown_timeout"`
	LogFormat       string        `json:"log_format"`
	Supervisor      string        `json:"supervisor"` // 128 random bits in hex, made at the supervisor's start
	N               int           `json:"n"`          // the incarnation: this is the n-th child for its queue
	Deaths          []jobs.Death  `json:"deaths"`     // of earlier incarnations since one was last ready
	Quiet           bool          `json:"quiet"`      // claim nothing until a Set says otherwise
	Times           Times         `json:"times"`
}

// Control is a line from the supervisor to a child.
type Control struct {
	Do     string        `json:"do"`               // Drain, Stop or Set
	Within time.Duration `json:"within,omitempty"` // Drain, Stop: how long the child may take, counted from reading the line
	Set    *Changed      `json:"set,omitempty"`    // Set: what holds from now on
}

// What a Control can ask for. Drain and Stop end with leases released; the order only moves upward.
const (
	Drain = "drain" // finish what runs, start nothing
	Stop  = "stop"  // end what runs
	Set   = "set"   // take on what can change in a running child
)

// Changed is what a running child takes on; for all else it is replaced.
type Changed struct {
	Worker          config.Worker `json:"worker"` // as before, but for its limits
	ShutdownTimeout time.Duration `json:"shutdown_timeout"`
	Quiet           bool          `json:"quiet"` // claim nothing, finish what runs, keep the lease
}

// Status is a line from a child to its supervisor.
type Status struct {
	Is     string `json:"is"`               // one of the constants below
	Detail string `json:"detail,omitempty"` // for people: why it waits, why it leaves
	Free   bool   `json:"free,omitempty"`   // Bye: nothing of ours is left in the database: released, or never held

	// Beat: how long the loop has not come round, and how many jobs run.
	Stale   time.Duration `json:"stale,omitempty"`
	Running int           `json:"running,omitempty"`
}

// What a child can say of itself.
const (
	Hello      = "hello"       // the process runs and has read its settings
	Bidding    = "bidding"     // it is about to try to acquire the queue
	Ready      = "ready"       // it holds the lease and claims jobs
	StandingBy = "standing by" // another holds the lease
	Waiting    = "waiting"     // for the database
	Beat       = "beat"        // every Times.Beat, whatever it is doing
	Bye        = "bye"         // the last line: about to exit
)

// Exit statuses of a child and of the program. Never 2: that is a Go panic.
const (
	ExitOK     = 0
	ExitFailed = 1  // or a lease may remain
	ExitUsage  = 64 // wrong command line
	ExitLater  = 75 // come back later
	ExitConfig = 78 // wrong settings: starting again does not help
)
