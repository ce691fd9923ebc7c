package child

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/go-hclog"

	"queuekeeper/config"
	"queuekeeper/jobs"
	"queuekeeper/ratelimit"
)

// rates are the limits of the queue and of its lanes.
type rates struct {
	limiter *ratelimit.Limiter
	lanes   *ratelimit.Lanes

	recount bool // the stored counts of the quotas could not be read: nothing is claimed before they are made anew
}

// maxStored is how many lanes' last starts are stored one by one for the next holder.
const maxStored = 16_384

func limitsOf(w config.Worker) ratelimit.Limits {
	l := ratelimit.Limits{Limit: ratelimit.Limit{PerSecond: w.MaxJobsPerSecond, Burst: w.Burst, Headroom: w.Headroom}}
	for _, q := range w.Quotas {
		l.Quotas = append(l.Quotas, ratelimit.Quota(q))
	}
	return l
}

func laneLimit(w config.Worker) ratelimit.Limit {
	return ratelimit.Limit{PerSecond: w.PerLane, Headroom: w.Headroom}
}

// startRates goes on with the rates as the last holder left them.
func (c *loop) startRates(a *jobs.Acquired) {
	w := c.set.Worker
	var err error
	c.limiter, err = ratelimit.New(limitsOf(w), c.now, ratelimit.Saved{
		EmptyFor: a.EmptyFor, Quotas: a.Quotas, Age: a.Settled, Uncounted: a.Waiting,
	})
	c.recount = err != nil
	if err != nil {
		c.log.Warn("the counts of the quotas are counted anew", "error", hclog.Quote(err.Error()))
	}
	c.limiter.Pause(c.pausedUntil)
	c.lanes = ratelimit.NewLanes(laneLimit(w), c.now, a.Lanes.EmptyFor, a.Lanes.Turns)
	c.served = jobs.Served{Lane: a.Lane, LaneLeft: a.LaneLeft}
	c.last, c.search = "", nil
	c.lanesPaused = len(c.lanesToPause) > 0 // of all others the first Step tells
	c.knowPauses(nil)
}

// stored is what the next holder has to know.
func (c *loop) stored() jobs.Rates {
	state := c.limiter.State(c.now)
	return jobs.Rates{
		EmptyFor: state.EmptyFor, Quotas: state.Quotas, Waiting: len(c.planned), Lane: c.served.Lane, LaneLeft: c.served.LaneLeft,
	}
}

// storedLanes is the same of the lanes. Too many are not worth it: all begin with an empty bucket then.
func (c *loop) storedLanes() jobs.LaneRates {
	if c.lanes.None() {
		return jobs.LaneRates{EmptyFor: 0}
	}
	emptyFor, turns := c.lanes.EmptyFor(c.now)
	if len(turns) > maxStored {
		return jobs.LaneRates{EmptyFor: 0}
	}
	return jobs.LaneRates{EmptyFor: emptyFor, Turns: turns}
}

// recounted is the answer to recountQuotas.
type recounted struct {
	known map[time.Duration][]ratelimit.Past
	err   error
}

// recountQuotas counts the starts of each quota from what the rows of the jobs tell.
func (c *loop) recountQuotas() op {
	quotas, within := limitsOf(c.set.Worker).Quotas, c.opTimeout()
	return func(l *link) any {
		a := recounted{known: map[time.Duration][]ratelimit.Past{}}
		a.err = l.withQueue(within, func(ctx context.Context, q *jobs.Queue) error {
			for _, quota := range quotas {
				started, err := q.Started(ctx, quota.Window, ratelimit.Slices)
				if err != nil {
					return err
				}
				for _, s := range started {
					a.known[quota.Window] = append(a.known[quota.Window], ratelimit.Past(s))
				}
			}
			return nil
		})
		return a
	}
}

// recountedNow goes on in any case: a queue must not stand still because its history cannot be read.
func (c *loop) recountedNow(a recounted) {
	c.recount = false
	for window, known := range a.known {
		c.limiter.Recount(c.now, window, known)
	}
	if a.err != nil {
		c.log.Error("quotas count from now: what started before cannot be read", "error", hclog.Quote(a.err.Error()))
		c.failed(fmt.Errorf("count starts: %w", a.err))
	}
}
