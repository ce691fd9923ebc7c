// Package config turns queues.toml into sound values, or into one report of every fault in it. After Load
// nobody checks again.
package config

import (
	"path/filepath"
	"time"
)

// File is a queues.toml that was found sound.
type File struct {
	Path            string // as given
	Dir             string // absolute: the folder the file is in; relative paths in the file start here
	DatabaseURL     string // default "${DATABASE_URL}"
	Schema          string // default "": where the connection's search_path points
	Lease           time.Duration
	ShutdownTimeout time.Duration
	LogFormat       string // "text" or "json"
	Workers         []Worker
}

// Worker is one [[worker]]: the one that serves its queue. Defaults are filled in.
type Worker struct {
	Queue            string         `json:"queue"`
	Path             string         `json:"path"`                // File.Path, for messages
	Line             int            `json:"line"`                // of its queue key, for messages
	Dir              string         `json:"dir"`                 // File.Dir: where its commands run
	Jobs             []string       `json:"jobs"`                // the names it accepts; empty: any
	Command          []string       `json:"command"`             // program and arguments; empty: a Go handler
	CommandLine      int            `json:"command_line"`        // of its command key, for messages; 0: none
	EnvLine          int            `json:"env_line"`            // of its env key, for messages; 0: none
	MaxJobsPerSecond float64        `json:"max_jobs_per_second"` // 0: no limit
	Burst            int            `json:"burst"`
	Headroom         float64        `json:"headroom"` // a fraction: 0.01 for "1%"
	Quotas           []Quota        `json:"quotas"`
	PerLane          float64        `json:"max_jobs_per_second_per_lane"` // 0: no limit
	Lanes            map[string]int `json:"lanes"`                        // weights; a lane that is not there has 1
	PauseScope       string         `json:"pause_scope"`                  // "queue" or "lane"
	Order            string         `json:"order"`                        // "due" or "strict"
	Concurrency      int            `json:"concurrency"`
	PollInterval     time.Duration  `json:"poll_interval"`
	Timeout          time.Duration  `json:"timeout"`
	KillAfter        time.Duration  `json:"kill_after"`
	MaxAttempts      int            `json:"max_attempts"`
	MemoryLimit      int64          `json:"memory_limit"` // bytes; 0: no limit
	Env              []string       `json:"env"`          // the names it has to itself and to those that list them too
	User             string         `json:"user"`         // name or number; "": as the supervisor
	Nice             int            `json:"nice"`         // 0 to 19
	Job              map[string]Job `json:"job"`          // what [worker.job.NAME] sets
}

// Job is what [worker.job.NAME] sets for one job name. A zero field means: as the worker.
type Job struct {
	Timeout     time.Duration `json:"timeout"`
	MaxAttempts int           `json:"max_attempts"`
	Command     []string      `json:"command"`
	CommandLine int           `json:"command_line"` // of its command key, for messages; 0: none
}

// Load reads the queues.toml at path and takes the variables it names from getenv (os.LookupEnv). The error
// is a Faults that holds every fault of the file; with one the File is empty. Only the file is read: whether
// commands exist is for CheckCommands to tell, whether there is such a user or database for whoever needs it.
func Load(path string, getenv func(string) (string, bool)) (File, error) {
	text, err := readFile(path)
	if err != nil {
		return File{}, Faults{{Path: path, Text: err.Error()}}
	}
	return parse(path, text, getenv)
}

// parse is Load once the bytes are there.
func parse(path, text string, getenv func(string) (string, bool)) (File, error) {
	text, fault := cleanText(text)
	if fault != nil {
		return File{}, fault.in(path)
	}
	lines, fault := scan(text)
	if fault != nil {
		return File{}, fault.in(path)
	}
	tree, fault := decode(text)
	if fault != nil {
		return File{}, fault.in(path)
	}
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return File{}, Faults{{Path: path, Text: err.Error()}}
	}
	c := checker{path: path, dir: dir, getenv: getenv}
	file := c.file(tree, lines)
	if len(c.faults) > 0 {
		c.faults.sort()
		return File{}, c.faults
	}
	return file, nil
}
