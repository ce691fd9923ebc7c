package ratelimit

import (
	"math"
	"time"
)

// Limit is what a file says about the starts of one queue.
type Limit struct {
	PerSecond float64 // 0: no limit
	Burst     int     // starts that may come at once after an idle time; below 1 counts as 1
	Headroom  float64 // the fraction of PerSecond that stays unused: 0.01 for 1 %
}

// rule is what a Limit means in time.
type rule struct {
	interval time.Duration // from turn to turn; 0: no limit
	forgiven time.Duration // how much lateness of a start is made up by the next ones
	full     time.Duration // what it takes to fill the bucket
}

// rule works out what the limit means in time. A start late by d is charged d early, so a window of length T may hold
// the turns of T + d. Half of the headroom pays for that (5 ms per second where it is 1 %); the other half is left
// for the way to whoever counts.
func (l Limit) rule() rule {
	if l.PerSecond == 0 {
		return rule{}
	}
	interval := seconds(1 / (l.PerSecond * (1 - l.Headroom)))
	return rule{
		interval: interval,
		forgiven: time.Duration(min(0.005, l.Headroom/2) * max(1, 1/l.PerSecond) * float64(time.Second)),
		full:     time.Duration(max(l.Burst, 1)) * interval,
	}
}

// emptyAt is when a bucket that was empty at a time was empty, as seen from now: time that would have filled it beyond
// the burst does not count.
func (r rule) emptyAt(empty, now time.Time) time.Time {
	return latest(empty, now.Add(-r.forgiven-r.full))
}

// Pace holds the starts of one queue to its Limit: in any half-open window of length T, at least 1 s and at least
// one interval long, there are at most ceil(PerSecond·T) + Burst − 1, if nothing starts before its turn.
//
// It is a token bucket whose whole state is the time at which it was empty. x/time/rate keeps a number of tokens
// instead; from that one cannot tell when a turn came that was missed, nor how many turns beyond the burst fall
// due until T, and its sums of fractions drift. Whole nanoseconds are exact.
//
// Times must be of one clock that does not go back, as those of time.Now are. One that does go back grants
// nothing: turns wait until it has caught up. A Pace is for one goroutine.
type Pace struct {
	limit Limit
	rule
	empty time.Time // no token was in the bucket then; never goes back
}

// NewPace returns a Pace whose bucket was empty emptyFor before now: 0 makes the next turn one interval away, a
// very long time fills the bucket and no more. An emptyFor below zero comes from a clock that went back and counts
// as 0.
func NewPace(limit Limit, now time.Time, emptyFor time.Duration) *Pace {
	return &Pace{limit, limit.rule(), now.Add(-max(emptyFor, 0))}
}

// Next returns the n-th turn from now on, counted from 1: now if a token is there for it, else when one will be.
// Without a limit it is always now.
func (p *Pace) Next(now time.Time, n int) time.Time {
	if p.interval == 0 {
		return now
	}
	return latest(now, p.emptyAt(p.empty, now).Add(time.Duration(n)*p.interval))
}

// Due returns how many turns there are from now until then, the tokens in the bucket included: so many jobs can
// start by then. Without a limit it is math.MaxInt.
func (p *Pace) Due(now, until time.Time) int {
	if p.interval == 0 {
		return math.MaxInt
	}
	return max(0, int(until.Sub(p.emptyAt(p.empty, now))/p.interval))
}

// Start charges one start. It is charged at its turn if it was late by no more than what is forgiven (up to 5 ms
// per second of the window), so that small lateness does not add up; of more lateness the rest is lost. Idle time
// is lateness too: at 200 per second and more the turns of those 5 ms come at once, beside the burst.
func (p *Pace) Start(at time.Time) {
	p.empty = p.emptyAt(p.empty, at).Add(p.interval)
}

// EmptyFor returns how long before now the bucket was empty, which is the whole state: NewPace takes it back at
// any later time, in this process or another.
func (p *Pace) EmptyFor(now time.Time) time.Duration {
	return now.Sub(p.emptyAt(p.empty, now))
}

// Empty takes all tokens away: the next turn is one interval after at. It is for the end of a pause.
func (p *Pace) Empty(at time.Time) {
	p.empty = latest(p.empty, at)
}

// SetLimit changes the limit. If it is another one the bucket starts empty: what was saved under the old limit does
// not come at the pace of the new one. The same limit again changes nothing.
func (p *Pace) SetLimit(limit Limit, now time.Time) {
	if limit == p.limit {
		return
	}
	// Starts may be ahead of their charge by what was forgiven; the new limit may forgive less.
	p.Empty(now.Add(p.forgiven))
	p.limit, p.rule = limit, limit.rule()
}

// seconds rounds up: an interval that is short by a nanosecond puts a start too many into a window.
func seconds(s float64) time.Duration {
	return time.Duration(math.Ceil(s * float64(time.Second)))
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
