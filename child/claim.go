package child

import (
	"slices"
	"time"

	"queuekeeper/jobs"
)

// claiming is what the loop knows of what there may be to claim. Whatever frees a slot, a lane or a row has to set more,
// or say when with lookAt: nobody else wakes the loop before the poll floor.
type claiming struct {
	more        bool      // there may be jobs that are due: told so, or the last claim came back full
	dueAt       time.Time // when the next one is due; zero: none that we know
	pollAt      time.Time // the floor: look then, whatever we were told
	suspectAt   time.Time // when the next suspect is due; zero: none that we know
	suspectHold time.Time // not before
	suspectLane string    // of that one
	full        bool      // the last claim brought all it asked for: there is a backlog
	news        bool      // it was for more than the poll floor
	dueFrom     time.Time // when we last heard what is due next
}

// toClaim adds to a Step what it is to claim.
func (c *loop) toClaim(s *jobs.Step) {
	n, suspect := c.room()
	if n == 0 {
		return
	}
	turns, ok := c.turns(suspect)
	if !ok {
		return
	}
	s.Claim, s.Suspect, s.Turns, s.Skip = n, suspect, turns, c.skipped()
}

// room is how many jobs to ask for: as many as have a slot and whose turns come before a Step is back. A suspect that
// is due is asked for by itself, once nothing else is in hand; until it has ended nothing is.
func (c *loop) room() (n int, suspect bool) {
	inHand := len(c.running) + len(c.planned)
	slots := c.set.Worker.Concurrency - inHand
	// An outcome that Postgres does not take for now keeps the suspect waiting, not the others.
	suspect = c.suspectIsDue() && (c.fresh || len(c.finished) == 0)
	wanted := suspect || c.more || c.isDue(c.dueAt) || c.due(c.pollAt)
	if c.draining || c.quiet || slots <= 0 || !wanted || !c.due(c.pausedUntil) || c.withSuspect() {
		return 0, false
	}
	lead := c.lead()
	if !c.due(c.limiter.Next(c.now, len(c.planned)+1).Add(-lead)) {
		return 0, false
	}
	switch {
	case suspect && inHand+len(c.finished) > 0:
		return 0, false
	case suspect || c.single:
		return 1, suspect
	}
	return max(0, min(slots, c.limiter.Due(c.now, c.now.Add(lead))-len(c.planned))), false
}

// suspectIsDue reports whether there is a suspect that may start now, or as soon as its lane may.
func (c *loop) suspectIsDue() bool {
	return c.isDue(c.suspectAt) && c.due(c.lanes.Next(c.now, c.suspectLane).Add(-c.lead()))
}

// isDue is due for a time that may be unknown.
func (c *loop) isDue(t time.Time) bool { return !t.IsZero() && c.due(t) }

// withSuspect reports whether a suspect is in hand.
func (c *loop) withSuspect() bool {
	for _, r := range c.running {
		if r.Suspect {
			return true
		}
	}
	return len(c.planned) > 0 && c.planned[0].Suspect
}

// lead is how long before a turn its job is claimed: as long as the slowest of the last Steps took, twice, for another
// may be under way when it is time for this one.
func (c *loop) lead() time.Duration {
	return min(max(2*slices.Max(c.trips[:]), 2*time.Millisecond), 250*time.Millisecond)
}

// claimed plans what a Step brought and notes whether there is more.
func (c *loop) claimed(s jobs.Step, r jobs.Reply) {
	if s.Claim > 0 {
		c.tookTurns(s, r)
		c.planned = append(c.planned, r.Claimed...)
		for _, j := range r.Claimed {
			delete(c.skip, j.ID)
		}
		c.full = len(r.Claimed) == s.Claim
		// If it came short without asking what is due next, that is asked with another claim: asked by itself it would
		// miss what has become due since.
		short := !c.full && !s.AskDue && (c.news || len(r.Claimed) > 0)
		c.more = c.more || c.full || short || r.Paused > 0 || s.Suspect
		c.pollAt = c.now.Add(c.poll)
	}
	if s.Suspect && len(r.Claimed) == 0 {
		c.suspectHold = c.now.Add(c.poll) // somebody has it locked
	}
	if s.AskDue {
		c.heardDue(r)
	}
}

// heardDue notes when there will be more to claim.
func (c *loop) heardDue(r jobs.Reply) {
	c.dueFrom = c.now
	c.suspectAt, c.dueAt = time.Time{}, time.Time{}
	c.suspectLane = r.SuspectLane
	if r.SuspectDue >= 0 {
		c.suspectAt = c.now.Add(r.SuspectDue)
		if c.suspectAt.Before(c.suspectHold) {
			c.suspectAt = c.suspectHold
		}
	}
	if r.Due >= 0 {
		c.lookAt(c.now.Add(r.Due))
	}
	if r.LaneDue >= 0 {
		c.lookAt(c.now.Add(r.LaneDue))
	}
	if _, first := c.lanes.Waiting(c.now, c.now.Add(c.lead())); !first.IsZero() {
		c.lookAt(first.Add(-c.lead()))
	}
	for _, until := range c.lanesPausedUntil {
		c.lookAt(until)
	}
	for _, refused := range c.skip {
		if refused.until.After(c.now) {
			c.lookAt(refused.until)
		}
	}
}

// lookAt makes t the time of the next claim, if that is not sooner.
func (c *loop) lookAt(t time.Time) {
	if c.dueAt.IsZero() || t.Before(c.dueAt) {
		c.dueAt = t
	}
}
