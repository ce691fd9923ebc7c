package child

import (
	"slices"
	"time"

	"queuekeeper/jobs"
)

// turning is what the loop knows of whose turn it is.
type turning struct {
	served jobs.Served // whose turn it was
	last   string      // where the round of turns ends; "": with the last lane there is
	search *string     // where a search for a lane with due jobs began; nil: none is under way
}

// Of lanes that wait for their turn only the next in the round are named to Postgres, with as much of the round as they
// cover. If more than maxWaiting wait in all, nothing is claimed until the first has its turn.
const (
	maxNamed   = 500
	maxWaiting = 200_000
)

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
