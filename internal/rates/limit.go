package main

import (
	"fmt"
	"math"
	"time"

	"queuekeeper/internal/windows"
)

// limit is what the file says of a queue: a pace or a quota.
type limit struct {
	perSecond float64
	burst     int
	quota     int // in any quotaWindow; 0: it is a pace
}

// quotaWindow is that of every quota here.
const quotaWindow = 10 * time.Second

func pace(perSecond float64, burst int) limit { return limit{perSecond: perSecond, burst: burst} }

func quota(n int) limit {
	return limit{perSecond: float64(n) / quotaWindow.Seconds(), burst: n, quota: n}
}

func (l limit) String() string {
	if l.quota > 0 {
		return fmt.Sprintf("%d/%gs", l.quota, quotaWindow.Seconds())
	}
	return fmt.Sprintf("%g/s", l.perSecond)
}

func (l limit) toml() string {
	if l.quota > 0 {
		return fmt.Sprintf("quotas = [%q]\n", l.String())
	}
	return fmt.Sprintf("max_jobs_per_second = %g\nburst = %d\n", l.perSecond, l.burst)
}

// shortest is the shortest window the promise is about.
func (l limit) shortest() time.Duration {
	if l.quota > 0 {
		return quotaWindow
	}
	return windows.Shortest(l.perSecond)
}

// lengths are those of the windows that are looked at. In long ones a burst shows that was granted again and again.
func (l limit) lengths() (all []time.Duration) {
	for _, times := range []time.Duration{1, 2, 5, 10} {
		all = append(all, times*l.shortest())
	}
	return all
}

// allowed is the promise: how many starts there may be in any half-open window of length w.
func (l limit) allowed(w time.Duration) int {
	if l.quota > 0 {
		return l.quota * int(math.Ceil(w.Seconds()/quotaWindow.Seconds()))
	}
	return windows.Allowed(l.perSecond, l.burst, w)
}

// most is the largest number of starts in any of the shortest windows.
func (l limit) most(starts []time.Time) int { return windows.Largest(starts, l.shortest()) }

// over counts the windows of all lengths that hold too many.
func (l limit) over(starts []time.Time) (over int) {
	for _, w := range l.lengths() {
		over += windows.Over(starts, w, l.allowed(w))
	}
	return over
}

// or is the larger of two limits of a kind: what holds for windows in which one was changed for the other.
func (l limit) or(other limit) limit {
	return limit{max(l.perSecond, other.perSecond), max(l.burst, other.burst), max(l.quota, other.quota)}
}

// early counts starts that came before their turn from a bucket that was empty at a time: the n-th at n intervals.
func (l limit) early(starts []time.Time, empty time.Time) (early int) {
	n := 0
	for _, start := range starts {
		if start.Before(empty) {
			continue
		}
		n++
		if start.Sub(empty).Seconds() < float64(n)/l.perSecond {
			early++
		}
	}
	return early
}
