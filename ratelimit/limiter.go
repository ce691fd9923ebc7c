// Package ratelimit answers two questions: when is the next turn, and how many turns fall due until then. It is
// pure arithmetic: time comes in as an argument, state goes in and out as a value.
package ratelimit

import (
	"cmp"
	"slices"
	"time"
)

// Limits are all that a file says about the starts of a queue.
type Limits struct {
	Limit
	Quotas []Quota // no two of the same window
}

// Saved is the state of a Limiter as it was stored, and how long ago.
type Saved struct {
	EmptyFor  time.Duration // of State, now; below zero, as from a clock that went back, it counts as 0
	Quotas    string        // of State
	Age       time.Duration // since Quotas was stored
	Uncounted int           // starts that may have happened since and are in no count of Quotas
}

// State is what a Limiter knows of the starts so far.
type State struct {
	EmptyFor time.Duration // since the bucket of the pace was empty; below 0 during a pause
	Quotas   string        // the counts of all quotas; "" without any
}

// Limiter holds the starts of one queue to its Limits, and to pauses. Times must be of one clock that does not go back;
// one that does grants nothing. A Limiter is for one goroutine.
type Limiter struct {
	pace   Pace
	quotas quotas
	paused time.Time // nothing starts before, and nothing at once then
}

// New goes on from a saved state: the zero Saved is that of a queue that has just used up its burst and whose quotas
// count from now. If Saved.Quotas cannot be read it is that one, and the error says so; Recount mends
// the quotas.
func New(limits Limits, now time.Time, saved Saved) (*Limiter, error) {
	known, err := readQuotas(saved.Quotas, now, saved.Age)
	if err != nil {
		saved.EmptyFor = 0 // who knows
	}
	l := &Limiter{pace: *NewPace(limits.Limit, now, saved.EmptyFor), quotas: known.of(limits.Quotas, now)}
	l.Count(now, saved.Uncounted)
	return l, err
}

// Next returns the n-th turn from now on, counted from 1: now if it is there. A turn beyond what a quota allows at all
// comes no sooner than what is returned.
func (l *Limiter) Next(now time.Time, n int) time.Time {
	next := l.pacing().Next(latest(now, l.paused), n)
	for _, c := range l.quotas {
		next = latest(next, c.next(now, n))
	}
	return next
}

// Due returns how many turns there are from now until then. Without a limit it is math.MaxInt.
func (l *Limiter) Due(now, until time.Time) int {
	if until.Before(l.paused) {
		return 0
	}
	due := l.pacing().Due(now, until)
	for _, c := range l.quotas {
		due = min(due, max(0, c.left(until)))
	}
	return due
}

// pacing is the pace as the pause leaves it.
func (l *Limiter) pacing() *Pace {
	p := l.pace
	p.Empty(l.paused)
	return &p
}

// Start charges one start; see Pace.Start for one that is late.
func (l *Limiter) Start(at time.Time) {
	l.pace.Empty(l.paused)
	l.pace.Start(at)
	l.Count(at, 1)
}

// Count charges the quotas, and not the pace, with starts that were at a time. They must be told in the order of time:
// earlier ones count as if they were at the latest there was.
func (l *Limiter) Count(at time.Time, starts int) {
	for _, c := range l.quotas {
		c.start(at, starts)
	}
}

// Past is a number of starts at one time.
type Past struct {
	Ago    time.Duration
	Starts int
}

// Recount counts the starts of the quota of a window anew, from what is known of them elsewhere.
func (l *Limiter) Recount(now time.Time, window time.Duration, known []Past) {
	known = slices.SortedFunc(slices.Values(known), func(a, b Past) int { return cmp.Compare(b.Ago, a.Ago) })
	for _, c := range l.quotas {
		if c.quota.Window == window {
			*c = *newCounter(c.quota, now.Add(-counted*c.slice()))
			for _, p := range known {
				c.start(now.Add(-max(0, p.Ago)), p.Starts)
			}
		}
	}
}

// Pause lets nothing start before until, and the bucket be empty then. It may be sooner than that of the pause before.
func (l *Limiter) Pause(until time.Time) { l.paused = until }

// SetLimits changes the limits. The bucket of another pace starts empty: what was saved under the old one does not come
// at the new one. A quota of a window there was goes on with its count, one of another window counts from now.
func (l *Limiter) SetLimits(limits Limits, now time.Time) {
	l.pace.SetLimit(limits.Limit, now)
	l.quotas = l.quotas.of(limits.Quotas, now)
}

// State returns the state to store: New takes it back at any later time, in this process or another.
func (l *Limiter) State(now time.Time) State {
	return State{l.pacing().EmptyFor(now), l.quotas.text(now)}
}
