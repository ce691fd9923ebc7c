package supervisor

import (
	"context"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"queuekeeper/config"
	"queuekeeper/internal/wire"
)

// reloading is where a reload is. There is one at a time; a HUP that comes meanwhile is one more afterwards.
type reloading struct {
	results chan reloaded      // capacity 1: nobody waits for the loop to take it
	cancel  context.CancelFunc // of the reload under way; nil: there is none
	asked   bool               // by a HUP that came meanwhile
	failed  string             // why the last one changed nothing; "": it did not fail
}

// reloaded is what came of reading the file again.
type reloaded struct {
	file  config.File
	users users
	err   error
}

// reload reads the file again, beside the loop: a disk or a database may hang.
func (s *supervisor) reload(ctx context.Context) {
	switch {
	case s.state > running:
		s.Log.Info("already ending: hangup ignored")
		return
	case s.Reload == nil:
		s.Log.Warn("hangup ignored: the file is read at start only", "file", s.File.Path)
		return
	}
	s.endQuiet()
	if s.reloading.cancel != nil {
		s.asked = true
		return
	}
	s.readFile(ctx)
}

func (s *supervisor) readFile(ctx context.Context) {
	s.notify.reloading()
	ctx, s.reloading.cancel = context.WithCancel(ctx)
	now := s.File
	go func() {
		file, err := s.Reload(ctx, now)
		s.reloading.results <- reloaded{file, lookUp(file.Workers), err}
	}()
}

// leaveReload ends a reload that nobody waits for any more.
func (s *supervisor) leaveReload() {
	if s.reloading.cancel != nil {
		s.reloading.cancel()
	}
}

// reloaded takes on a file that is sound. With one that is not nothing changes.
func (s *supervisor) reloaded(ctx context.Context, r reloaded) {
	s.leaveReload()
	s.reloading.cancel = nil
	if s.state > running {
		return
	}
	s.failed, s.changed = "", true
	if r.err != nil {
		s.failed = r.err.Error()
		s.Log.Error("file not taken on, everything stays as it is; mend it and send HUP", "file", s.File.Path, "error", hclog.Quote(s.failed))
	} else {
		s.adopt(r.file, r.users)
	}
	s.owed = true
	s.announce()
	if s.asked {
		s.asked = false
		s.readFile(ctx)
	}
}

// adopt makes the children those of the file, and touches none that stays as it is.
func (s *supervisor) adopt(file config.File, users users) {
	if file.LogFormat != s.File.LogFormat {
		s.Log.Warn("log_format changes with the next start only", "now", s.File.LogFormat)
		file.LogFormat = s.File.LogFormat
	}
	if names := ownNames(s.File, file); len(names) > 0 {
		s.Log.Warn("names in the environment are nobody's own any more: every queue sees them", "names", strings.Join(names, " "))
	}
	s.File, s.users = file, users
	var did changes
	for _, w := range file.Workers {
		s.adoptWorker(w, &did)
	}
	for _, c := range s.children {
		if !c.removed && !slices.ContainsFunc(file.Workers, func(w config.Worker) bool { return w.Queue == c.queue() }) {
			s.remove(c)
			did.removed++
		}
	}
	s.Log.Info("file taken on", "file", file.Path, "added", did.added, "replaced", did.replaced, "limits", did.limits,
		"removed", did.removed, "unchanged", did.unchanged)
	if s.Adopted != nil {
		s.Adopted(file)
	}
}

// ownNames are those that some worker of the old file has to itself, and none of the new.
func ownNames(before, now config.File) (names []string) {
	for _, w := range before.Workers {
		for _, name := range w.Env {
			own := slices.ContainsFunc(now.Workers, func(w config.Worker) bool { return slices.Contains(w.Env, name) })
			if !own && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// changes counts what a reload does.
type changes struct{ added, replaced, limits, removed, unchanged int }

func (s *supervisor) adoptWorker(w config.Worker, did *changes) {
	c, next := s.child(w.Queue), s.made(w)
	switch {
	case c == nil:
		s.children = append(s.children, &child{made: next, startAt: time.Now()})
		did.added++
		return
	case c.removed:
		did.added++
	case reflect.DeepEqual(c.made.withoutLines(), next.withoutLines()):
		did.unchanged++
	case reflect.DeepEqual(c.made.withoutLimits(), next.withoutLimits()):
		did.limits++
		s.Log.Info("limits changed", append([]any{"queue", w.Queue}, w.Limits()...)...)
	default:
		did.replaced++
		s.replace(c)
	}
	if c.parked || c.removed { // what it lacked may be there by now, whatever the file says
		c.parked, c.removed, c.lastExit = false, false, ""
		c.wake()
	}
	c.made = next
	s.tell(c)
}

// replace has another process with other settings take over, once the one that runs has left in order.
func (s *supervisor) replace(c *child) {
	c.failures = 0
	c.wake()
	if c.alive != nil && !c.alive.leaving {
		s.Log.Info("child told to leave: its settings have changed", "queue", c.queue(), "pid", c.alive.pid, "n", c.n)
		s.leave(c.alive, wire.Drain, s.File.ShutdownTimeout)
	}
}

// wake has a child that is not there started now.
func (c *child) wake() {
	if c.alive == nil {
		c.startAt = time.Now()
	}
}

func (s *supervisor) remove(c *child) {
	c.removed, c.parked, c.startAt = true, false, time.Time{}
	if c.alive != nil && !c.alive.leaving { // one that hangs gets no more time for it
		s.Log.Info("child told to leave: its queue is not in the file any more", "queue", c.queue(), "pid", c.alive.pid, "n", c.n)
		s.leave(c.alive, wire.Drain, s.File.ShutdownTimeout)
	}
}

// tell has a running child take on what can change while it runs. It is all of that, so that a child that was told
// twice, or too late, is right all the same. One that has to leave keeps what it began with.
func (s *supervisor) tell(c *child) {
	if c.alive != nil && !c.alive.leaving {
		c.alive.orders.put(wire.Control{Do: wire.Set, Set: &wire.Changed{
			Worker: c.made.worker, ShutdownTimeout: s.File.ShutdownTimeout, Quiet: s.quiet,
		}})
	}
}

// beQuiet has nothing claimed any more, until the next HUP. What runs may finish.
func (s *supervisor) beQuiet() {
	if s.state > running || s.quiet {
		return
	}
	s.setQuiet(true)
	s.Log.Warn("quiet: nothing is claimed until the next hangup")
}

func (s *supervisor) endQuiet() {
	if s.quiet {
		s.setQuiet(false)
		s.Log.Info("quiet no more")
	}
}

func (s *supervisor) setQuiet(quiet bool) {
	s.quiet, s.changed = quiet, true
	for _, c := range s.children {
		s.tell(c)
	}
}

// made is what the process of a queue is made of. If any of it changes but the limits, there must be another.
type made struct {
	worker      config.Worker
	databaseURL string
	schema      string
	lease       time.Duration
	env         []string
	user        found
}

func (s *supervisor) made(w config.Worker) made {
	return made{
		w, s.File.DatabaseURL, s.File.Schema, s.File.Lease, childEnv(os.Environ(), w, s.File.Workers), s.users[w.User],
	}
}

// withoutLines leaves out where in the file it stands.
func (m made) withoutLines() made {
	m.worker.Line, m.worker.CommandLine, m.worker.EnvLine = 0, 0, 0
	jobs := map[string]config.Job{}
	for name, j := range m.worker.Job {
		j.CommandLine = 0
		jobs[name] = j
	}
	m.worker.Job = jobs
	return m
}

// withoutLimits leaves out what a running child takes on as well.
func (m made) withoutLimits() made {
	m = m.withoutLines()
	w := &m.worker
	w.MaxJobsPerSecond, w.Burst, w.Headroom, w.Quotas, w.PerLane, w.Lanes, w.PauseScope = 0, 0, 0, nil, 0, nil, ""
	return m
}
