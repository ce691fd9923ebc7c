package main

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"
)

func inLanes(interval int, lanes ...string) (starts []event) {
	for i, lane := range lanes {
		starts = append(starts, event{id: int64(i), at: at(i * interval)[0], lane: lane})
	}
	return starts
}

func TestTurnsBeforeALaneAreCountedFromTheCommit(t *testing.T) {
	starts := inLanes(10, "flood", "flood", "flood", "flood", "late-1", "flood")
	for ms, want := range map[int]int{0: 4, 15: 2, 40: 0, 41: 0} {
		if got := startsBefore(starts, "late-1", at(ms)[0]); got != want {
			t.Errorf("starts between %d ms and the lane's at 40 ms: got %d, want %d", ms, got, want)
		}
	}
	if got := startsBefore(starts, "late-2", at(0)[0]); got != math.MaxInt {
		t.Errorf("starts before a lane's that never starts: got %d, want the largest number", got)
	}
}

func TestSharesAreComparedWithTheWeights(t *testing.T) {
	for _, c := range []struct{ five, three, two, percent int }{
		{5000, 3000, 2000, 0}, {4900, 3050, 2050, 3}, {3334, 3333, 3333, 67},
	} {
		lanes := slices.Concat(slices.Repeat([]string{"five"}, c.five), slices.Repeat([]string{"three"}, c.three),
			slices.Repeat([]string{"two"}, c.two))
		off, measured := shares(inLanes(1, lanes...))
		if got := int(math.Ceil(100*off - 1e-9)); got != c.percent {
			t.Errorf("%s: got %d %% off, want %d %%", measured, got, c.percent)
		}
	}
}

func TestEachLaneHasItsOwnLimit(t *testing.T) {
	var sound []event
	for i := range 50 {
		for s := range 20 {
			sound = append(sound, event{at: at(i*2 + s*1010)[0], lane: fmt.Sprint(i)})
		}
	}
	slices.SortFunc(sound, func(a, b event) int { return a.at.Compare(b.at) })
	if rate, over := laneRates(sound); over != 0 || math.Abs(rate-49.3) > 0.3 {
		t.Errorf("50 lanes at 1 in 1010 ms: got %.2f/s and %d windows over, want 49.3/s and none", rate, over)
	}
	sound[500].at = sound[500].at.Add(-20 * time.Millisecond)
	if _, over := laneRates(sound); over == 0 {
		t.Error("a start of a lane 990 ms after the one before: got no window over, want some")
	}
}
