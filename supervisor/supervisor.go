// Package supervisor is the parent process: it starts one child process per queue, starts it again when it
// has died, and ends all of them in order. It holds no connection to the database.
package supervisor

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"

	"queuekeeper/config"
	"queuekeeper/internal/procs"
	"queuekeeper/internal/wire"
)

// Options are what a supervisor is started with.
type Options struct {
	File config.File  // the queues, and how long a shutdown may take
	Log  hclog.Logger // safe for concurrent use; a write to it must not block for long

	// Times are handed to every child as well. Defaults to wire.Default().
	Times wire.Times

	// Executable is what is started as a child: with the arguments "child" and the queue's name. Defaults to
	// the running binary itself, even where its file has been replaced since.
	Executable string
}

// supervisor is the state of Run. One goroutine, the one in loop, owns all of it and all that hangs on it;
// the others (see incarnation.live) only send on reports and exits.
type supervisor struct {
	Options            // fixed
	id       string    // fixed: 128 random bits in hex, new for every Run
	env      []string  // fixed: the environment of every child
	children []*child  // fixed: one per queue, for good
	state    state     // only moves upward
	endsBy   time.Time // when what is left is killed; set once, by the first request to end
	deadline <-chan time.Time
	repeated bool // a request to end that changes nothing was logged

	// Unbuffered, so that all a child has said is dealt with before its exit is. The loop runs until the last
	// incarnation has sent its exit, so there is always somebody to receive.
	reports chan report
	exits   chan exit
}

// Run starts a child per queue and keeps them running until ctx ends or a signal asks for the end, and
// returns the status to exit with: wire.ExitOK if every lease was given back, else wire.ExitFailed. It
// returns only when no child is left. A queue whose child exits with wire.ExitConfig is parked and the
// others go on; even with all of them parked Run goes on, for a status that was asked for beats a restart by
// the process manager that changes nothing.
//
// TERM, INT and the end of ctx drain: children finish the jobs that run. INT again, or QUIT, stops: children
// end the jobs that run. Both release the leases, and both together take at most File.ShutdownTimeout; what
// is left then is killed. HUP does nothing but a line in the log. Run is for a whole process, once: it keeps
// catching these signals after it has returned.
func Run(ctx context.Context, o Options) int {
	signals := catchSignals()
	if err := procs.CloseOnExec(); err != nil {
		o.Log.Warn("descriptors this process was started with may go on to children", "error", err)
	}
	s, err := newSupervisor(o)
	if err != nil {
		o.Log.Error("supervisor not started", "error", err)
		return wire.ExitFailed
	}
	s.Log.Info("supervisor started", "queues", len(s.children), "supervisor", s.id)
	status := s.loop(ctx, signals)
	s.Log.Info("supervisor ended", "status", status)
	return status
}

func newSupervisor(o Options) (*supervisor, error) {
	if o.Times == (wire.Times{}) {
		o.Times = wire.Default()
	}
	if o.Executable == "" {
		path, err := self()
		if err != nil {
			return nil, err
		}
		o.Executable = path
	}
	s := &supervisor{
		Options: o,
		id:      newID(),
		env:     childEnv(os.Environ()),
		reports: make(chan report),
		exits:   make(chan exit),
	}
	now := time.Now()
	for _, w := range o.File.Workers {
		// Whoever read the file has refused this. What all the rest relies on is checked once more.
		if slices.ContainsFunc(s.children, func(c *child) bool { return c.worker.Queue == w.Queue }) {
			return nil, fmt.Errorf("queue %s: two workers", w.Queue)
		}
		s.children = append(s.children, &child{worker: w, startAt: now})
	}
	return s, nil
}

// self is the running binary. By /proc it is the same one after its file was replaced or removed: a child
// of another version than its supervisor is not possible.
func self() (string, error) {
	if runtime.GOOS == "linux" {
		return "/proc/self/exe", nil
	}
	return os.Executable()
}

func newID() string {
	id := make([]byte, 16)
	_, _ = rand.Read(id) // never fails
	return hex.EncodeToString(id)
}

// loop is the supervisor's whole life.
func (s *supervisor) loop(ctx context.Context, signals *signals) int {
	ended := ctx.Done()
	for s.state == running || s.anyAlive() {
		select {
		case <-signals.quit:
			s.end(stopping, "QUIT")
		case <-signals.interrupt:
			s.interrupted()
		case <-signals.terminate:
			s.end(draining, "TERM")
		case <-ended:
			ended = nil
			s.end(draining, "context")
		case <-signals.hangup:
			s.Log.Warn("hangup ignored: the file is read at start only", "file", s.File.Path)
		case <-s.deadline:
			s.kill()
		case e := <-s.exits:
			s.exited(e)
		case r := <-s.reports:
			s.reported(r)
		case <-s.nextStart():
			s.startNext()
		}
	}
	return s.exitStatus()
}
