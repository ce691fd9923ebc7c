package child

import (
	"context"
	"fmt"
	"slices"
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
	last    string      // where the round of turns ends; "": with the last lane there is
	search  *string     // where a search for a lane with due jobs began; nil: none is under way

	recount bool // the stored counts of the quotas could not be read: nothing is claimed before they are made anew
}

// What is known of lanes is bounded. Of those that wait for their turn only the next in the round are named to Postgres,
// with as much of the round as they cover. If more wait in all, nothing is claimed until the first has its turn; and for
// the next holder no more than some are stored one by one.
const (
	maxNamed   = 500
	maxWaiting = 200_000
	maxStored  = 16_384
)

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
	t = &jobs.Turns{Weights: c.set.Worker.Lanes, Strict: c.strict(), One: !c.lanes.None(), Last: c.last}
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
	t.Waiting = append(append(t.Waiting, c.lanesInHand()...), c.disputedLanes()...)
	c.narrow(t)
	return t, true
}

// narrow has a claim look at no more of the round than the next lanes that wait are in.
func (c *loop) narrow(t *jobs.Turns) {
	most := maxNamed + c.set.Worker.Concurrency
	if len(t.Waiting) <= most {
		return
	}
	t.Narrow = true
	t.Waiting = slices.DeleteFunc(t.Waiting, func(lane string) bool {
		return lane < c.served.Lane || t.Last != "" && lane > t.Last
	})
	slices.Sort(t.Waiting)
	if len(t.Waiting) > most {
		t.Waiting = t.Waiting[:most]
		t.Last = t.Waiting[most-1]
	}
}

// lanesInHand are those that may have no second job beside one we have: with a limit for each, beside one that has not
// started yet; in strict order, beside one that still runs, though it may be cancelled.
func (c *loop) lanesInHand() (lanes []string) {
	if !c.lanes.None() {
		for _, j := range c.planned {
			lanes = append(lanes, j.Lane)
		}
	}
	if c.strict() {
		for _, r := range c.running {
			lanes = append(lanes, r.Lane)
		}
	}
	return lanes
}

// tookTurns notes what a claim in turns found, and whether another has to go on: if it did not see all lanes, or if in
// those it saw there was less than they were granted (somebody has it locked, say).
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
	all := c.endOfRound(s, r, before)
	switch {
	case len(r.Claimed) == 0 && !all && r.Beyond && c.last == "" && c.served.Lane == "":
		c.search, c.more = new(string), true // a new round, in which there are more lanes than when the search began
	case len(r.Claimed) > 0:
		c.search = nil
		c.more = c.more || !all || len(r.Claimed) < r.Granted // what a lane left is for the others
		return
	case all && r.Granted == 0:
		c.search = nil
	case c.search == nil:
		c.search, c.more = &before, true
	case passed(before, c.served.Lane, *c.search):
		c.search = nil
	default:
		c.more = true
	}
	c.served.LaneLeft = 0
}

// endOfRound notes where the next claim begins if this one came to the end of what it was to look at, and reports
// whether that was all there is, or as much as it needed.
func (c *loop) endOfRound(s jobs.Step, r jobs.Reply, before string) (all bool) {
	t, short := *s.Turns, !r.Cut && r.Granted < s.Claim
	switch {
	case short && t.Narrow && t.Last != c.last:
		c.served.Lane, c.served.LaneLeft = t.Last, 0
		return false
	case short && (t.Narrow || r.Beyond && r.Granted == 0):
		c.served.Lane, c.served.LaneLeft, c.last = "", 0, ""
		return false
	case c.last == "" || r.Lane < before || r.Lane == before && s.Rates.LaneLeft == 0 || r.Lane > c.last:
		c.last = r.Top // the next round
	}
	return !r.Cut && !(short && r.Beyond)
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
