package supervisor

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"

	"queuekeeper/internal/wire"
	"queuekeeper/jobs"
)

// maxDeaths bounds what a crash loop of days hands to its next incarnation.
const maxDeaths = 100

// child is the one place a queue's process can be in: over all its incarnations, of which it has at most one.
type child struct {
	made made // what the next incarnation is made of

	n       int          // incarnations started so far
	alive   *incarnation // the n-th; nil: it is reaped, or none was started yet
	startAt time.Time    // when the next is due; zero: not waiting for one. Set only while alive is nil
	parked  bool         // its settings are wrong: not started before the next reload
	removed bool         // its queue is not in the file any more

	failures int          // ends and failed starts since the last that were forgotten
	deaths   []jobs.Death // since one was last ready
	leased   bool         // an incarnation was ready and no later one has said that the lease is free
	leaseEnd time.Time    // when that lease has run out at the latest, if no incarnation lives

	detail   string // why it waits or is parked, for people
	restarts int    // after ends that nobody asked for
	lastExit string // how the last incarnation ended that was not asked to; "": none did
	exitedAt time.Time
}

func (c *child) queue() string { return c.made.worker.Queue }

// nextStart fires when a child is due to be started; nil: none is waiting.
func (s *supervisor) nextStart() <-chan time.Time {
	c := s.firstDue()
	if c == nil {
		return nil
	}
	return time.After(time.Until(c.startAt))
}

func (s *supervisor) firstDue() *child {
	var first *child
	for _, c := range s.children {
		if !c.startAt.IsZero() && (first == nil || c.startAt.Before(first.startAt)) {
			first = c
		}
	}
	return first
}

// startNext starts one child only: with two hundred of them due, a signal does not wait for the last.
func (s *supervisor) startNext() {
	c := s.firstDue()
	c.startAt = time.Time{}
	alive, err := s.spawn(c)
	s.changed = true
	if err != nil {
		c.detail = err.Error()
		s.Log.Error("child not started", "queue", c.queue(), "n", c.n+1, "error", err, "again_in", s.again(c))
		return
	}
	c.n++
	c.alive, c.parked, c.detail = alive, false, ""
	go alive.live(s.reports, s.exits)
	s.Log.Info("child started", "queue", c.queue(), "pid", alive.pid, "n", c.n)
}

// reported is a line from a child. What a newer child may say that is not known here means nothing.
func (s *supervisor) reported(r report) {
	i, c := r.from, r.from.child
	if r.garbage {
		s.Log.Warn("status line not understood: dropped, more of them are only counted", "queue", c.queue(), "pid", i.pid, "n", c.n)
		return
	}
	i.silent = 0
	switch r.status.Is {
	case wire.Beat:
		i.jobs = r.status.Running
		s.foundStale(i, r.status.Stale)
		return
	case wire.Bidding:
		i.bid = true
		return
	}
	if r.status.Detail != "" {
		i.detail = r.status.Detail
	}
	i.is = r.status.Is
	i.up = i.up || i.is == wire.Ready || i.is == wire.StandingBy || i.is == wire.Waiting
	s.changed = true
	switch r.status.Is {
	case wire.Ready:
		s.ready(i)
	case wire.StandingBy: // another supervisor has the lease, so none of ours does
		c.leased, i.bid = false, false
		i.leaveReady(s.Times.RestartForget)
	case wire.Waiting:
		i.leaveReady(s.Times.RestartForget)
	case wire.Bye:
		// An incarnation that never had the lease has released nothing for its predecessors.
		c.leased = !r.status.Free || (c.leased && !i.wasReady)
		i.bid = false
	}
	s.Log.Debug("child says", "queue", c.queue(), "pid", i.pid, "n", c.n, "is", r.status.Is, "detail", r.status.Detail)
}

func (s *supervisor) ready(i *incarnation) {
	i.wasReady, i.detail = true, ""
	i.child.leased = true
	i.child.deaths = nil // it has acquired, and with that put their jobs in order
	if i.readySince.IsZero() {
		i.readySince = time.Now()
	}
}

// exited is the end of an incarnation: reaped, and nothing of its session is left.
func (s *supervisor) exited(e exit) {
	i, c := e.of, e.of.child
	c.alive = nil
	c.leaseEnd = time.Now().Add(i.lease)
	c.leased = c.leased || i.bid // it may have acquired the queue and had no time to say so
	s.changed = true
	i.leaveReady(s.Times.RestartForget)
	if i.hung != "" {
		e.cause = i.hung
	}
	c.mourn(jobs.Death{N: c.n, Cause: e.cause, Ours: i.killed})
	facts := []any{"queue", c.queue(), "pid", i.pid, "n", c.n, "cause", hclog.Quote(e.cause),
		"lived", time.Since(i.started).Round(time.Millisecond)}
	if e.garbage > 0 {
		s.Log.Warn("status lines were dropped", append(facts, "lines", e.garbage)...)
	}
	if e.left != nil {
		s.Log.Error("processes of the child may remain", append(facts, "error", e.left)...)
	}
	switch {
	case s.state > running || c.removed:
		s.Log.Info("child ended", facts...)
	case i.leaving && i.hung == "":
		s.Log.Info("child ended", append(facts, "again_in", s.at(c, time.Now()))...)
	case e.status == wire.ExitConfig && i.is == wire.Bye: // one without a last word is a handler's own
		c.parked, c.detail = true, i.detail
		c.exitsWith(e.cause)
		s.Log.Error("queue parked: it cannot work as it is set up; put it right and send HUP", append(facts, "detail", hclog.Quote(i.detail))...)
	case e.status == wire.ExitLater && i.is == wire.Bye: // it asked for a new process, and has failed in nothing
		c.exitsWith(e.cause)
		s.Log.Warn("child asks for a new process", append(facts, "again_in", s.at(c, i.started.Add(s.Times.RestartMin)))...)
	default:
		c.exitsWith(e.cause)
		s.Log.Warn("child died", append(facts, "again_in", s.again(c), "detail", hclog.Quote(i.detail))...)
	}
}

func (c *child) exitsWith(cause string) {
	c.lastExit, c.exitedAt = cause, time.Now()
	if !c.parked {
		c.restarts++
	}
}

// mourn keeps the death for the next incarnation. Of too many the first stays, for only that one can have
// had jobs: those after it were never ready.
func (c *child) mourn(d jobs.Death) {
	if len(c.deaths) == maxDeaths {
		c.deaths = slices.Delete(c.deaths, 1, 2)
	}
	c.deaths = append(c.deaths, d)
}

// again has the child started once more after a failure, and says in how long.
func (s *supervisor) again(c *child) time.Duration {
	c.failures++
	return s.at(c, time.Now().Add(restartDelay(s.Times, c.failures, rand.Float64())))
}

// at has the child started then, and says in how long.
func (s *supervisor) at(c *child, t time.Time) time.Duration {
	c.startAt = t
	return max(0, time.Until(t)).Round(time.Millisecond)
}

// restartDelay is how long to wait after the failures-th failure in a row: not at all, then Times.RestartMin,
// doubling up to Times.RestartMax, give or take a fifth. random, in [0, 1), says how much.
func restartDelay(t wire.Times, failures int, random float64) time.Duration {
	if failures <= 1 {
		return 0
	}
	delay := t.RestartMin
	for k := 2; k < failures && delay < t.RestartMax; k++ {
		delay *= 2
	}
	delay = min(delay, t.RestartMax)
	return time.Duration(float64(delay) * (0.8 + 0.4*random)).Round(time.Millisecond)
}
