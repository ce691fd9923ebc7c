// Package handler is what does a job: a Go function of the program, or a command started for each job. It
// runs one attempt of one job, and turns how that ended into an outcome; when, how often and whether in time
// is the child's to decide.
package handler

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/hashicorp/go-hclog"

	"queuekeeper/config"
	"queuekeeper/jobs"
)

// Set is what does the jobs of one queue.
type Set struct {
	worker config.Worker
	own    map[string]jobs.Handler // by job name
	log    hclog.Logger
	env    []string // of every command
}

// New makes the Set of worker: its commands, and the program's own handlers for its queue. What commands
// print goes to log. The error says that there are neither: the settings are wrong, and trying again does
// not help.
func New(worker config.Worker, own jobs.Handlers, log hclog.Logger) (*Set, error) {
	s := &Set{worker: worker, own: own[worker.Queue], log: log, env: os.Environ()}
	if len(worker.Command) == 0 && len(s.known()) == 0 {
		return nil, fmt.Errorf("queue %s: nothing does its jobs: no command in the file, no Go handler in this program", worker.Queue)
	}
	return s, nil
}

// Find returns the handler of the job called name. The more specific wins: the command of
// [worker.job.NAME], then the Go handler of that name, then the worker's command. The error names the names
// that are known.
func (s *Set) Find(name string) (jobs.Handler, error) {
	if h := s.find(name); h != nil {
		return h, nil
	}
	return nil, fmt.Errorf("unknown job name %q: queue %s knows %s", name, s.worker.Queue, strings.Join(s.known(), ", "))
}

func (s *Set) find(name string) jobs.Handler {
	if len(s.worker.Jobs) > 0 && !slices.Contains(s.worker.Jobs, name) {
		return nil
	}
	if argv := s.worker.Job[name].Command; len(argv) > 0 {
		return s.command(argv)
	}
	if h := s.own[name]; h != nil {
		return h
	}
	if len(s.worker.Command) > 0 {
		return s.command(s.worker.Command)
	}
	return nil
}

// known lists the names that have a handler, as far as they can be listed: a worker with a command and no
// list of jobs takes any.
func (s *Set) known() []string {
	names := slices.Concat(s.worker.Jobs, slices.Collect(maps.Keys(s.own)), slices.Collect(maps.Keys(s.worker.Job)))
	names = slices.DeleteFunc(names, func(name string) bool { return s.find(name) == nil })
	slices.Sort(names)
	return slices.Compact(names)
}

func (s *Set) command(argv []string) jobs.Handler {
	w := s.worker
	return command{argv: argv, dir: w.Dir, killAfter: w.KillAfter, memoryLimit: w.MemoryLimit, env: s.env, log: s.log}.run
}

// Go reports whether some job of the queue may be done by a function of this program: one that ignores the end
// of its context ends only with the process.
func (s *Set) Go() bool { return len(s.own) > 0 }
