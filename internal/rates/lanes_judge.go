package main

import (
	"fmt"
	"math"
	"time"
)

// startsBefore counts the starts of other lanes between the moment at which the job of a lane was known to be there and
// its start, which may have come before that was known.
func startsBefore(starts []event, lane string, from time.Time) (n int) {
	for _, s := range starts {
		switch {
		case s.lane == lane:
			return n
		case !s.at.Before(from):
			n++
		}
	}
	return math.MaxInt // it never started
}

// shares tells how many starts each lane with a weight had, and how far off its weight the worst was, as a fraction.
func shares(starts []event) (off float64, measured string) {
	had, sum := map[string]int{}, 0
	for _, s := range starts {
		had[s.lane]++
	}
	for _, weight := range weights {
		sum += weight
	}
	for lane, weight := range weights {
		want := float64(len(starts)*weight) / float64(sum)
		off = max(off, math.Abs(float64(had[lane])-want)/want)
	}
	return off, fmt.Sprintf("%d:%d:%d", had["five"], had["three"], had["two"])
}

// laneRates tells how fast the queue was, after the first start of each lane, which may come at once; and in how many
// windows a lane had more than 1 per second.
func laneRates(starts []event) (rate float64, over int) {
	lanes := map[string][]time.Time{}
	for _, s := range starts {
		lanes[s.lane] = append(lanes[s.lane], s.at)
	}
	for _, starts := range lanes {
		over += pace(1, 1).over(starts)
	}
	all := times(starts)
	return mean(limit{perSecond: float64(len(lanes)), burst: len(lanes)}, [][]time.Time{all}), over
}
