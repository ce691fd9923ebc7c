package ratelimit

import "time"

// Lanes holds each lane of a queue to a pace of its own, of one start per interval. Times are as for a Pace. Lanes is
// for one goroutine.
type Lanes struct {
	rule
	since time.Time            // no lane that is not in empty had a token then
	empty map[string]time.Time // as Pace.empty, of the lanes whose bucket may not be full yet
}

// NewLanes returns Lanes of which each lane's bucket was empty emptyFor before now, or that of turns if that is less. Of
// the limit the burst is left out: it is 1. A Limit without a rate limits nothing.
func NewLanes(limit Limit, now time.Time, emptyFor time.Duration, turns map[string]time.Duration) *Lanes {
	limit.Burst = 1
	l := &Lanes{limit.rule(), now.Add(-max(0, emptyFor)), map[string]time.Time{}}
	for lane, ago := range turns {
		l.empty[lane] = now.Add(-max(0, ago))
	}
	return l
}

// None reports whether nothing is limited.
func (l *Lanes) None() bool { return l.interval == 0 }

// Next returns the next turn of a lane: now if it is there.
func (l *Lanes) Next(now time.Time, lane string) time.Time {
	if l.None() {
		return now
	}
	return latest(now, l.emptyAt(l.emptied(lane), now).Add(l.interval))
}

func (l *Lanes) emptied(lane string) time.Time { return latest(l.since, l.empty[lane]) }

// Start charges a lane with a start; see Pace.Start for one that is late.
func (l *Lanes) Start(lane string, at time.Time) {
	if !l.None() {
		l.empty[lane] = l.emptyAt(l.emptied(lane), at).Add(l.interval)
	}
}

// AllFrom returns a time before which no lane has a turn.
func (l *Lanes) AllFrom() time.Time { return l.since.Add(l.interval) }

// Waiting returns the lanes that have no turn before a time, and when the first of them has one; others have one by
// then. It forgets those of which there is nothing to know any more.
func (l *Lanes) Waiting(now, before time.Time) (lanes []string, first time.Time) {
	for lane := range l.empty {
		next := l.Next(now, lane)
		switch {
		case next.After(before):
			lanes = append(lanes, lane)
			if first.IsZero() || next.Before(first) {
				first = next
			}
		case !l.empty[lane].After(l.emptyAt(time.Time{}, now)):
			delete(l.empty, lane)
		}
	}
	return lanes, first
}

// EmptyFor returns how long before now the bucket of every lane was empty, and of those that were empty later how long
// before now that was. That is the whole state: NewLanes takes it back at any later time.
func (l *Lanes) EmptyFor(now time.Time) (all time.Duration, turns map[string]time.Duration) {
	turns = map[string]time.Duration{}
	for lane, empty := range l.empty {
		if empty.After(l.since) && empty.After(l.emptyAt(time.Time{}, now)) {
			turns[lane] = now.Sub(empty)
		}
	}
	return now.Sub(l.since), turns
}

// SetLimit changes the limit. If it is another one every lane's bucket starts empty.
func (l *Lanes) SetLimit(limit Limit, now time.Time) {
	limit.Burst = 1
	if r := limit.rule(); r != l.rule {
		l.since = latest(l.since, now.Add(l.forgiven)) // as in Pace.SetLimit
		l.rule = r
	}
}

// Pause has the bucket of a lane be empty at the end of a pause.
func (l *Lanes) Pause(lane string, until time.Time) {
	if !l.None() {
		l.empty[lane] = latest(l.empty[lane], until)
	}
}

// Lift ends the pauses of all lanes: their buckets are empty now.
func (l *Lanes) Lift(now time.Time) {
	for lane, empty := range l.empty {
		l.empty[lane] = earliest(empty, now.Add(l.forgiven))
	}
}

func earliest(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
