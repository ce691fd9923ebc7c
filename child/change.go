package child

import (
	"context"
	"reflect"
	"slices"

	"queuekeeper/internal/wire"
	"queuekeeper/jobs"
)

// change takes on what a supervisor may change in a running child.
func (c *loop) change(to wire.Changed) {
	limits, before := to.Worker.Limits(), c.set.Worker
	c.set.Worker, c.set.ShutdownTimeout = to.Worker, to.ShutdownTimeout
	c.limiter.SetLimits(limitsOf(to.Worker), c.now)
	c.lanes.SetLimit(laneLimit(to.Worker), c.now)
	c.more = true // there may be room now
	c.described = c.described && reflect.DeepEqual(shown(to.Worker), shown(before))
	if !slices.Equal(limits, before.Limits()) {
		c.log.Info("limits taken on", limits...)
	}
	if to.Quiet != c.quiet {
		c.quiet = to.Quiet
		c.more = true // who knows what came meanwhile
		if c.quiet {
			c.unplan(nil)
		}
		c.log.Info("quiet", "quiet", c.quiet, "jobs", len(c.running))
	}
}

// described is the answer to describe.
type described struct{ err error }

// describe writes the new limits where whoever looks from outside finds them.
func (c *loop) describe() op {
	c.described = true
	settings, within := shown(c.set.Worker), c.opTimeout()
	return func(l *link) any {
		return described{l.withQueue(within, func(ctx context.Context, q *jobs.Queue) error {
			return q.Describe(ctx, settings)
		})}
	}
}

func (c *loop) describedNow(a described) {
	if a.err != nil {
		c.described = false
		c.failed(a.err)
	}
}
