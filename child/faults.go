package child

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/hashicorp/go-hclog"

	"queuekeeper/handler"
	"queuekeeper/internal/wire"
	"queuekeeper/jobs"
)

// failed is the one place that decides what follows a failed operation.
func (c *loop) failed(err error) {
	switch {
	case errors.Is(err, jobs.ErrLeaseLost):
		c.held, c.mayHold, c.bidAt = false, false, time.Time{}
		c.log.Warn("lease lost; another holds the queue")
		c.keepOnly(nil)
		return
	case errors.Is(err, errOffline) || !c.online:
		// A new connection is a new epoch: the queue must be acquired again.
		c.online, c.held = false, false
	default:
		c.bare = c.held
	}
	c.failures++
	delay := c.backOff()
	c.retryAt = c.now.Add(delay)
	c.log.Warn("waiting for the database", "again_in", delay.Round(time.Millisecond), "error", hclog.Quote(err.Error()))
	c.report(wire.Waiting, err.Error())
}

// backOff is the back-off after so many failures: none after the first, and with a lease in hand never so long
// that it could run out meanwhile.
func (c *loop) backOff() time.Duration {
	if c.failures == 1 {
		return 0
	}
	t := c.set.Times
	delay := handler.Backoff(c.failures-2, t.ReconnectMin, t.ReconnectMax, rand.Float64())
	if c.held {
		return min(delay, c.set.Lease/6)
	}
	return delay
}

func (c *loop) stepFailed(a stepped) {
	c.fresh = c.fresh || len(a.step.Ended) > 0
	c.more = c.more || a.step.Claim > 0
	c.askGone = c.askGone || len(a.step.Held) > 0
	if !jobs.IsDataError(a.err) {
		c.failed(a.err)
		return
	}
	// Postgres refuses the data of one job. Nothing is wrong with the rest: find out which one it is.
	c.bare = true
	switch {
	case !c.single:
		c.single = true
	case len(a.step.Ended) > 0:
		c.refuse(a.step.Ended[0].ID, a.err)
	default:
		c.do(c.findHead(a.step, a.err))
	}
}

// head is the answer to findHead: the job that could not be claimed, and why.
type head struct {
	id  int64
	err error
}

func (c *loop) findHead(s jobs.Step, refused error) op {
	s.Skip = c.skipped()
	within := c.opTimeout()
	return func(l *link) any {
		h := head{err: refused}
		err := l.withQueue(within, func(ctx context.Context, q *jobs.Queue) (err error) {
			h.id, err = q.Head(ctx, s)
			return err
		})
		if err != nil {
			return head{err: err}
		}
		return h
	}
}

// refuse leaves a job alone for a while; the others go on.
func (c *loop) refuse(id int64, err error) {
	if id == 0 {
		if !jobs.IsDataError(err) {
			c.failed(err)
		}
		return
	}
	r := c.skip[id]
	r.times++
	delay := c.backoff(r.times)
	r.until = c.now.Add(delay)
	c.skip[id] = r
	c.lookAt(r.until)
	c.log.Error("Postgres refuses this job's row; leaving it alone for a while", "id", id, "again_in", delay.Round(time.Millisecond),
		"error", hclog.Quote(err.Error()))
}

// swept is the answer to sweep.
type swept struct {
	recovered []jobs.Ended
	err       error
}

// sweep looks for running rows of the queue that nobody works on.
func (c *loop) sweep() op {
	held, within := c.holding(), c.opTimeout()
	return func(l *link) (a any) {
		var recovered []jobs.Ended
		err := l.withQueue(within, func(ctx context.Context, q *jobs.Queue) (err error) {
			recovered, err = q.Sweep(ctx, held, c.backoff)
			return err
		})
		return swept{recovered, err}
	}
}

func (c *loop) sweptNow(a swept) {
	c.sweepAt = c.now.Add(c.set.Times.Sweep)
	if a.err != nil {
		c.failed(a.err)
		return
	}
	c.more = c.more || len(a.recovered) > 0
	c.logRecovered(a.recovered)
}

func (c *loop) logRecovered(ended []jobs.Ended) {
	for _, e := range ended {
		c.log.Warn("job recovered", "id", e.ID, "attempt", e.Attempt, "status", e.Kind, "error", hclog.Quote(e.Error))
	}
}
