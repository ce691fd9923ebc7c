// Package supervisor is the parent process: it starts one child process per queue, starts it again when it
// has died or hangs, takes on a changed file, and ends all of them in order. It never waits for the database.
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
	"queuekeeper/jobs"
)

// Options are what a supervisor is started with.
type Options struct {
	File config.File  // the queues, and how long a shutdown may take
	Log  hclog.Logger // safe for concurrent use; a write to it must not block for long

	// Reload reads the file again, at HUP: the new one, or why everything stays as it is. It runs beside the loop and
	// may take its time; ctx ends when the supervisor has to leave. Defaults to none: HUP is a line in the log.
	Reload func(ctx context.Context, now config.File) (config.File, error)

	// Adopted is told of a file that Reload returned and that holds now. It must not block. Defaults to nobody.
	Adopted func(config.File)

	// Show is told what all children are whenever that has changed. It must not block. Defaults to nobody.
	Show func(jobs.Picture)

	// Times are handed to every child as well. Defaults to wire.Default().
	Times wire.Times

	// Executable is what is started as a child: with the arguments "child" and the queue's name. Defaults to
	// the running binary itself, even where its file has been replaced since.
	Executable string
}

// supervisor is the state of Run. One goroutine, the one in loop, owns all of it and all that hangs on it;
// the others (see incarnation.live) only send on reports and exits.
type supervisor struct {
	Options            // File changes with a reload, the rest is fixed
	users    users     // of File
	id       string    // fixed: 128 random bits in hex, new for every Run
	host     string    // fixed
	notify   *notifier // fixed: to the process manager
	began    time.Time // fixed
	initial  bool      // fixed: this is process 1 of a machine or container, and all orphans are left to it
	children []*child  // one per queue that ever was in the file: numbers of incarnations only grow
	state    state     // only moves upward
	quiet    bool      // children claim nothing, until the next HUP
	endsBy   time.Time // when what is left is killed; set once, by the first request to end
	deadline <-chan time.Time
	repeated bool // a request to end that changes nothing was logged
	reloading
	showing

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
// is left then is killed. HUP reads the file again, USR1 logs the status, USR2 has nothing claimed until the next
// HUP. Run is for a whole process, once: it keeps catching these signals after it has returned.
func Run(ctx context.Context, o Options) int {
	signals := caught()
	if err := procs.CloseOnExec(); err != nil {
		o.Log.Warn("descriptors this process was started with may go on to children", "error", err)
	}
	s, err := newSupervisor(o)
	if err != nil {
		o.Log.Error("supervisor not started", "error", err)
		return wire.ExitFailed
	}
	defer s.notify.close()
	s.Log.Info("supervisor started", "queues", len(s.children), "supervisor", s.id, "pid", os.Getpid(),
		"shutdown_timeout", s.File.ShutdownTimeout)
	status := s.loop(ctx, signals)
	s.Log.Info("supervisor ended", "status", status)
	return status
}

func newSupervisor(o Options) (*supervisor, error) {
	if err := procs.DropAmbient(); err != nil {
		return nil, err
	}
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
		users:   lookUp(o.File.Workers),
		id:      newID(),
		notify:  newNotifier(o.Log),
		began:   time.Now(),
		initial: os.Getpid() == 1,
		reports: make(chan report),
		exits:   make(chan exit),
	}
	s.owed = true
	s.host, _ = os.Hostname() // "" is harmless: it only shows
	s.reloading.results = make(chan reloaded, 1)
	for _, w := range o.File.Workers {
		// Whoever read the file has refused this. What all the rest relies on is checked once more.
		if s.child(w.Queue) != nil {
			return nil, fmt.Errorf("queue %s: two workers", w.Queue)
		}
		s.children = append(s.children, &child{made: s.made(w), startAt: s.began})
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
	tick := time.NewTicker(s.Times.Tick)
	defer tick.Stop()
	defer s.leaveReload()
	watchdog := s.notify.ticks()
	for s.state == running || s.anyAlive() {
		s.show()
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
			s.reload(ctx)
		case <-signals.status:
			s.logStatus()
		case <-signals.quiet:
			s.beQuiet()
		case <-s.deadline:
			s.kill()
		case e := <-s.exits:
			s.exited(e)
		case r := <-s.reports:
			s.reported(r)
		case <-s.nextStart():
			s.startNext()
		case r := <-s.reloading.results:
			s.reloaded(ctx, r)
		case <-signals.orphan:
			s.reapOrphans()
		case <-tick.C:
			s.watch()
		case <-watchdog:
			s.notify.alive()
		}
	}
	s.show()
	return s.exitStatus()
}

// child is the one of that queue; nil: it was never in the file.
func (s *supervisor) child(queue string) *child {
	i := slices.IndexFunc(s.children, func(c *child) bool { return c.queue() == queue })
	if i < 0 {
		return nil
	}
	return s.children[i]
}

func (s *supervisor) anyAlive() bool {
	return slices.ContainsFunc(s.children, func(c *child) bool { return c.alive != nil })
}

// reapOrphans collects what ended and was left to us. The children's own ends are for those that wait for them.
func (s *supervisor) reapOrphans() {
	_, err := procs.ReapOrphans(func(pid int) bool {
		return slices.ContainsFunc(s.children, func(c *child) bool { return c.alive != nil && c.alive.pid == pid })
	})
	if err != nil {
		s.Log.Warn("ended processes not collected", "error", err)
	}
}
