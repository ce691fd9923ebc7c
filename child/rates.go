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

// rates are the limits of the queue and whose turn it is.
type rates struct {
	limiter *ratelimit.Limiter
	lanes   *ratelimit.Lanes
	served  jobs.Served // whose turn it was
	round   *string     // where the search for a lane with due jobs began; nil: none is under way

	recount bool // the stored counts of the quotas could not be read: nothing is claimed before they are made anew
}

// maxWaiting is how many lanes may wait for their turn: each is named to Postgres at every claim. If there are more
// nothing is claimed until the first has its turn.
const maxWaiting = 16384

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
	c.round, c.lanesPaused = nil, a.Paused
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
	if len(turns) > maxWaiting {
		return jobs.LaneRates{EmptyFor: 0}
	}
	return jobs.LaneRates{EmptyFor: emptyFor, Turns: turns}
}

// strict reports whether a job must not be overtaken.
func (c *loop) strict() bool { return c.set.Worker.Order == "strict" }

// inTurns reports whether lanes matter: for all that is known there is more than one, or they are limited one by one.
func (c *loop) inTurns() bool {
	return c.served.Others || c.lanesPaused || len(c.lanesPausedUntil) > 0 || c.strict() || !c.lanes.None()
}

// turns says for a claim, of a suspect or of all others, how lanes take turns; nil: there is but one. ok is false if all
// have to wait.
func (c *loop) turns(suspect bool) (t *jobs.Turns, ok bool) {
	if !c.inTurns() {
		return nil, true
	}
	t = &jobs.Turns{Weights: c.set.Worker.Lanes, Strict: c.strict(), One: !c.lanes.None()}
	if t.One {
		lead := c.lead()
		if !c.due(c.lanes.AllFrom().Add(-lead)) {
			return nil, false
		}
		var first time.Time
		t.Waiting, first = c.lanes.Waiting(c.now, c.now.Add(lead))
		if len(t.Waiting) > maxWaiting {
			c.due(first.Add(-lead))
			return nil, false
		}
	}
	if t.One && !suspect && c.isDue(c.suspectAt) {
		t.Waiting = append(t.Waiting, c.suspectLane) // the next turn of its lane is its own
	}
	t.Waiting = append(append(t.Waiting, c.lanesInHand()...), c.lanesWaiting()...)
	return t, true
}

// lanesInHand are those that may have no second job beside one we have: with a limit for each, beside one that has not
// started yet; in strict order, beside one that is not ours any more and still runs. (Of all others that run the
// database knows.)
func (c *loop) lanesInHand() (lanes []string) {
	if !c.lanes.None() {
		for _, j := range c.planned {
			lanes = append(lanes, j.Lane)
		}
	}
	if c.strict() {
		for _, r := range c.running {
			if r.lost {
				lanes = append(lanes, r.Lane)
			}
		}
	}
	return lanes
}

// tookTurns notes what a claim in turns found. If it brought nothing, though it did not see all lanes or those it saw
// had due jobs (somebody has them locked, say), the next one goes on where it ended, until all the round was seen.
func (c *loop) tookTurns(s jobs.Step, r jobs.Reply) {
	before := c.served.Lane
	c.served = r.Served
	if s.Turns == nil {
		c.more = c.more || r.LanesPaused // it looked at none: the next one does
		if n := len(r.Claimed); n > 0 {
			c.served.Lane, c.served.LaneLeft = r.Claimed[n-1].Lane, 0
		}
		return
	}
	switch {
	case len(r.Claimed) > 0:
		c.round = nil
		c.more = c.more || r.Cut || len(r.Claimed) < r.Granted // what a lane left is for the others
	case !r.Cut && r.Granted == 0:
		c.round = nil
	case c.round == nil:
		c.round, c.more = &before, true
	case passed(before, r.Lane, *c.round):
		c.round = nil
	default:
		c.more = true
	}
	if len(r.Claimed) == 0 {
		c.served.LaneLeft = 0
	}
}

// passed reports whether who goes from a lane to another, upwards and round again, comes by a third.
func passed(from, to, by string) bool {
	if from < to {
		return from < by && by <= to
	}
	return from < by || by <= to
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
				started, err := q.Started(ctx, quota.Window, 100)
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
