package windows

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestLargestAgreesWithTheDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		origin := time.Unix(0, 0)
		var starts []time.Time
		for _, ms := range rapid.SliceOf(rapid.IntRange(0, 200)).Draw(t, "starts in ms") {
			starts = append(starts, origin.Add(time.Duration(ms)*time.Millisecond))
		}
		w := time.Duration(rapid.IntRange(1, 60).Draw(t, "window in ms")) * time.Millisecond

		want := 0
		for _, left := range starts { // a fullest window can be moved right until it begins with a start
			n := 0
			for _, start := range starts {
				if !start.Before(left) && start.Before(left.Add(w)) {
					n++
				}
			}
			want = max(want, n)
		}
		if got := Largest(starts, w); got != want {
			t.Fatalf("largest of %v in %s: got %d, want %d", starts, w, got, want)
		}
	})
}

func TestWindowEndIsNotInTheWindow(t *testing.T) {
	starts := []time.Time{time.Unix(1, 0), time.Unix(0, 0)}
	if got := Largest(starts, time.Second); got != 1 {
		t.Errorf("two starts one second apart, window 1 s: got %d, want 1", got)
	}
	if got := Largest(starts, time.Second+1); got != 2 {
		t.Errorf("two starts one second apart, window 1 s and 1 ns: got %d, want 2", got)
	}
	if got := Largest(nil, time.Second); got != 0 {
		t.Errorf("no starts: got %d, want 0", got)
	}
}

func TestAllowedIsTheCeilingAndTheBurst(t *testing.T) {
	for _, c := range []struct {
		perSecond float64
		burst     int
		w         time.Duration
		want      int
	}{
		{10, 1, time.Second, 10},
		{10, 5, time.Second, 14},
		{0.1, 1, 30 * time.Second, 3}, // not 4: the product of the floats is above 3
		{0.1, 1, 30*time.Second + 1, 4},
		{0.3333333333, 1, Shortest(0.3333333333), 1},
		{0.5, 1, Shortest(0.5), 1},
		{2.5, 1, Shortest(2.5), 3},
	} {
		if got := Allowed(c.perSecond, c.burst, c.w); got != c.want {
			t.Errorf("allowed at %g/s, burst %d, in %s: got %d, want %d", c.perSecond, c.burst, c.w, got, c.want)
		}
	}
}

func TestWindowsOverAreThoseWithOneStartTooMany(t *testing.T) {
	at := func(ms ...int) (starts []time.Time) {
		for _, m := range ms {
			starts = append(starts, time.Unix(0, 0).Add(time.Duration(m)*time.Millisecond))
		}
		return starts
	}
	for _, c := range []struct {
		starts []time.Time
		want   int
	}{
		{nil, 0},
		{at(0, 500, 1000, 1500), 0},
		{at(1500, 999, 500, 0), 1},       // [0, 1000) has three
		{at(0, 500, 999, 1499, 2100), 2}, // and so has [500, 1500)
	} {
		if got := Over(c.starts, time.Second, 2); got != c.want {
			t.Errorf("windows of 1 s with more than 2 of %v: got %d, want %d", c.starts, got, c.want)
		}
	}
}
