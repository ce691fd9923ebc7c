package supervisor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"queuekeeper/internal/procs"
	"queuekeeper/internal/wire"
	"queuekeeper/jobs"
)

// showing is what was said of the children, and whether that still holds.
type showing struct {
	changed bool // since it was last shown
	owed    bool // the process manager waits to hear that we are ready
	age     int  // ticks since the start
}

// stateOf is what a child is, for people: docs/operations.md says what each means.
func (s *supervisor) stateOf(c *child) string {
	switch i := c.alive; {
	case i == nil && (c.removed || s.state > running):
		return jobs.ChildEnded
	case i == nil && c.parked:
		return jobs.ChildParked
	case i == nil && c.n == 0 && c.failures == 0:
		return jobs.ChildStarting
	case i == nil:
		return jobs.ChildRestarting
	case i.leaving || s.state > running:
		return jobs.ChildLeaving
	case i.is == wire.Ready && s.quiet:
		return jobs.ChildQuiet
	case i.is == wire.Waiting:
		return jobs.ChildWaiting
	case i.is == wire.Ready:
		return jobs.ChildReady
	case i.is == wire.StandingBy:
		return jobs.ChildStandingBy
	default:
		return jobs.ChildStarting
	}
}

// picture is what all children are.
func (s *supervisor) picture() jobs.Picture {
	p := jobs.Picture{Supervisor: s.id, Host: s.host, FailedReload: s.failed}
	for _, c := range s.children {
		seen := jobs.Child{
			Queue: c.queue(), State: s.stateOf(c), Detail: c.detail, Restarts: c.restarts, LastExit: c.lastExit,
			Deaths: slices.Clone(c.deaths),
		}
		if c.removed && c.alive == nil {
			p.Removed = append(p.Removed, seen)
			continue
		}
		if c.alive != nil {
			seen.PID, seen.Detail = c.alive.pid, c.alive.detail
		}
		if c.lastExit != "" {
			seen.ExitAgo = time.Since(c.exitedAt)
		}
		p.Children = append(p.Children, seen)
	}
	return p
}

// show tells whoever looks from outside what has changed.
func (s *supervisor) show() {
	if !s.changed {
		return
	}
	s.changed = false
	if s.Show != nil {
		s.Show(s.picture())
	}
	s.notify.status(s.summary())
	s.announce()
}

// announce tells the process manager that we are ready, at the start and after each reload: once no child is still
// coming up, or when that has taken long enough. One queue that cannot start must not fail the start of all.
func (s *supervisor) announce() {
	if !s.owed || s.state > running {
		return
	}
	if s.age <= s.ticks(s.Times.Announce) && s.comingUp() {
		return
	}
	s.owed = !s.notify.ready(s.summary())
}

func (s *supervisor) comingUp() bool {
	for _, c := range s.children {
		if s.stateOf(c) == jobs.ChildStarting {
			return true
		}
	}
	return false
}

// inOrder are the states as a summary names them.
var inOrder = []string{
	jobs.ChildStarting, jobs.ChildReady, jobs.ChildQuiet, jobs.ChildStandingBy, jobs.ChildWaiting, jobs.ChildRestarting,
	jobs.ChildParked, jobs.ChildLeaving, jobs.ChildEnded,
}

// summary is the state of all in a line: "20 queues: 18 ready, 1 parked, 1 restarting".
func (s *supervisor) summary() string {
	count := map[string]int{}
	total := 0
	for _, c := range s.children {
		if c.removed && c.alive == nil {
			continue
		}
		total++
		count[s.stateOf(c)]++
	}
	var parts []string
	for _, state := range inOrder {
		if count[state] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", count[state], state))
		}
	}
	text := fmt.Sprintf("%d queues: %s", total, strings.Join(parts, ", "))
	if s.failed != "" {
		text += "; reload failed: " + strings.SplitN(s.failed, "\n", 2)[0]
	}
	return text
}

// logStatus writes a line for each queue, and one for all.
func (s *supervisor) logStatus() {
	facts := []any{"state", s.state.String(), "quiet", s.quiet, "up", time.Since(s.began).Round(time.Second), "queues", hclog.Quote(s.summary())}
	if procs.Replaced() {
		facts = append(facts, "binary", "replaced on disk since the start")
	}
	s.Log.Info("status", facts...)
	for _, c := range s.children {
		if c.removed && c.alive == nil {
			continue
		}
		s.Log.Info("status of queue", s.factsOf(c)...)
	}
}

func (s *supervisor) factsOf(c *child) []any {
	facts := []any{"queue", c.queue(), "state", s.stateOf(c), "n", c.n}
	detail := c.detail
	if i := c.alive; i != nil {
		detail = i.detail
		facts = append(facts, "pid", i.pid, "jobs", i.jobs, "lived", time.Since(i.started).Round(time.Second))
	} else if !c.startAt.IsZero() {
		facts = append(facts, "again_in", max(0, time.Until(c.startAt)).Round(time.Millisecond))
	}
	if detail != "" {
		facts = append(facts, "detail", hclog.Quote(detail))
	}
	if c.lastExit != "" {
		facts = append(facts, "last_exit", hclog.Quote(c.lastExit), "last_exit_ago", time.Since(c.exitedAt).Round(time.Second))
	}
	return facts
}
