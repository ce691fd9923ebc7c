package child

import (
	"context"
	"errors"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"

	"queuekeeper/internal/procs"
	"queuekeeper/internal/wire"
	"queuekeeper/jobs"
)

// leaving is how far the loop is on its way out. It only moves forward.
type leaving struct {
	draining        bool
	stopping        bool      // contexts were ended
	jobsUntil       time.Time // until then jobs may finish
	killAt          time.Time // then they are given back, whether they have ended or not
	exitAt          time.Time // then the process is gone, whatever holds it up
	exitCode        int       // if all goes well
	withoutOutcomes bool      // Postgres refused an outcome at the release: release without any

	left bool
	code int
}

// signalled takes a signal. The supervisor speaks by the pipe; signals are for people and process managers.
func (c *loop) signalled(s os.Signal) {
	switch s {
	case syscall.SIGTERM:
		c.drain(c.set.ShutdownTimeout, wire.ExitOK)
	case syscall.SIGQUIT:
		c.stop(c.set.ShutdownTimeout)
	}
}

// ordered takes a line of the supervisor, or its end: then this process has nothing to live for.
func (c *loop) ordered(o wire.Control, ok bool) {
	switch {
	case !ok:
		c.control = nil
		c.log.Warn("the supervisor is gone; leaving")
		c.drain(c.set.ShutdownTimeout, wire.ExitOK)
	case o.Do == wire.Drain:
		c.drain(o.Within, wire.ExitOK)
	case o.Do == wire.Stop:
		c.stop(o.Within)
	case o.Do == wire.Set && o.Set != nil:
		c.change(*o.Set)
	}
}

// drain starts nothing more. What runs may finish for four fifths of the time. Told again it may take less time than it
// was given first, but never more.
func (c *loop) drain(within time.Duration, code int) {
	now := time.Now()
	jobsUntil, exitAt := now.Add(within*4/5), now.Add(beforeKill(within))
	if c.draining {
		c.jobsUntil, c.exitAt = earlier(c.jobsUntil, jobsUntil), earlier(c.exitAt, exitAt)
		return
	}
	c.draining, c.exitCode = true, code
	c.jobsUntil, c.exitAt = jobsUntil, exitAt
	c.unplan(nil)
	c.log.Info("draining", "jobs", len(c.running), "jobs_have", time.Until(jobsUntil).Round(time.Millisecond), "within", within)
}

// stop ends what runs, now.
func (c *loop) stop(within time.Duration) {
	c.drain(within, wire.ExitOK)
	c.jobsUntil = earlier(c.jobsUntil, time.Now())
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// beforeKill is a little less than within: at its end the supervisor kills.
func beforeKill(within time.Duration) time.Duration {
	return within - min(within/20, 500*time.Millisecond)
}

// guardExit ends contexts when the time of jobs is over, and the process when all time is.
func (c *loop) guardExit() {
	if !c.draining {
		return
	}
	if !c.stopping && c.due(c.jobsUntil) {
		c.stopping = true
		c.killAt = c.now.Add(min(c.set.Worker.KillAfter, c.exitAt.Sub(c.now)/2))
		c.cancelAll(errStopped)
	}
	if c.due(c.exitAt) {
		c.log.Error("out of time; the lease may remain until it runs out", "jobs", len(c.running))
		c.leave(wire.ExitFailed)
		return
	}
	if !c.mayHold {
		c.leave(c.exitCode) // no lease of ours can be in the database
	}
}

// releasing reports whether it is time to give the queue back: nothing runs any more, or it has had its time.
func (c *loop) releasing() bool {
	return c.draining && (len(c.running)+len(c.finished) == 0 || c.stopping && c.due(c.killAt))
}

// released is the answer to release.
type released struct{ err error }

// release gives the queue back, and with it every job that has not ended: excused, since it was we who stopped it.
func (c *loop) release() op {
	if len(c.running) > 0 {
		if err := procs.KillRest(); err != nil {
			c.log.Error("some processes may still run", "error", hclog.Quote(err.Error()))
		}
	}
	ended := slices.Clone(c.finished)
	for _, r := range c.running {
		if !r.lost {
			ended = append(ended, jobs.Ended{Ref: r.Ref(), Kind: jobs.KindExcused, Started: r.started, Error: errStopped.Error()})
		}
	}
	if c.withoutOutcomes {
		ended = nil // whoever acquires next brings them back
	}
	last := c.told()
	last.Ended = ended
	lanes, within := c.storedLanes(), c.opTimeout()
	return func(l *link) any {
		return released{l.withQueue(within, func(ctx context.Context, q *jobs.Queue) error {
			return q.Release(ctx, last, lanes)
		})}
	}
}

func (c *loop) releasedNow(a released) {
	c.withoutOutcomes = jobs.IsDataError(a.err)
	if a.err != nil && !errors.Is(a.err, jobs.ErrLeaseLost) {
		c.failed(a.err)
		return
	}
	c.held, c.mayHold = false, false
	c.log.Info("queue released")
	c.leave(c.exitCode)
}

// leave ends the loop. What handlers started must not outlive this process.
func (c *loop) leave(code int) {
	if c.left {
		return
	}
	if len(c.running) > 0 {
		_ = procs.KillRest()
	}
	c.left, c.code = true, code
}
