// Package windows counts starts in sliding windows: the rate limits' promise, measured on what really happened.
package windows

import (
	"math"
	"slices"
	"time"
)

// Shortest returns the shortest window the promise is about: 1 s, or the interval of a rate below one per second.
func Shortest(perSecond float64) time.Duration {
	return time.Duration(max(1, 1/perSecond) * float64(time.Second))
}

// Allowed returns how many starts the promise allows in any half-open window of length w, which is at least
// Shortest: ceil(perSecond·w) + burst − 1.
func Allowed(perSecond float64, burst int, w time.Duration) int {
	const exact = 1 - 1e-15 // 0.1 · 30 s is 3.0000000000000004 and must not become 4
	return int(math.Ceil(perSecond*w.Seconds()*exact)) + burst - 1
}

// Largest returns the largest number of starts in any half-open window [t, t+w). The starts may come in any order.
func Largest(starts []time.Time, w time.Duration) int {
	starts = slices.SortedFunc(slices.Values(starts), time.Time.Compare)
	largest, first := 0, 0
	for i, start := range starts {
		for start.Sub(starts[first]) >= w {
			first++
		}
		largest = max(largest, i-first+1)
	}
	return largest
}

// Over counts the half-open windows of length w that begin with a start and hold more than allowed starts. The starts
// may come in any order.
func Over(starts []time.Time, w time.Duration, allowed int) (over int) {
	starts = slices.SortedFunc(slices.Values(starts), time.Time.Compare)
	for i := allowed; i < len(starts); i++ {
		if starts[i].Sub(starts[i-allowed]) < w {
			over++
		}
	}
	return over
}
