package ratelimit

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var origin = time.Unix(1_000_000_000, 0)

// full is a Limiter whose bucket is full and whose quotas count from now.
func full(limits Limits) *Limiter {
	l, _ := New(limits, origin, Saved{EmptyFor: longAgo})
	return l
}

// drawUsed is a queue some way on.
func drawUsed(t *rapid.T, limits Limits) *history {
	h := newHistory(limits, Limit{})
	for range rapid.IntRange(0, 12).Draw(t, "rounds") {
		h.goOn(drawSpan(t, limits, "idle"))
		for range rapid.IntRange(1, 8).Draw(t, "starts") {
			h.start("a", drawSpan(t, Limits{Limit: limits.Limit}, "late"))
		}
	}
	h.goOn(drawSpan(t, limits, "idle"))
	if rapid.Bool().Draw(t, "paused") {
		h.pause(h.now.Add(drawSpan(t, limits, "pause")))
	}
	return h
}

func least(quotas []Quota) int {
	n := math.MaxInt
	for _, q := range quotas {
		n = min(n, q.Starts)
	}
	return n
}

func TestDueOfAllLimitsCountsTheTurnsThatNextNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := drawLimits(t)
		h := drawUsed(t, limits)
		until := h.now.Add(drawSpan(t, limits, "ahead"))
		due := h.limiter.Due(h.now, until)
		if due > least(limits.Quotas) {
			t.Fatalf("turns due until %s ahead: got %d, more than the quota of %d", until.Sub(h.now), due, least(limits.Quotas))
		}
		if limits.PerSecond == 0 && len(limits.Quotas) == 0 {
			if got := h.limiter.Next(h.now, 9).After(until); got != (due == 0) {
				t.Fatalf("no limit: %d turns due until %s ahead, Next: in %s", due, until.Sub(h.now), h.limiter.Next(h.now, 9).Sub(h.now))
			}
			return
		}
		if next := h.limiter.Next(h.now, max(due, 1)); due > 0 && next.After(until) {
			t.Fatalf("%d turns due until %s ahead, but that one is in %s", due, until.Sub(h.now), next.Sub(h.now))
		}
		if next := h.limiter.Next(h.now, due+1); due < least(limits.Quotas) && !next.After(until) {
			t.Fatalf("%d turns due until %s ahead, but one more is in %s", due, until.Sub(h.now), next.Sub(h.now))
		}
	})
}

func TestTurnsThatNextNamesComeNoSoonerAndThoseOfOneLimitThen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := drawLimits(t)
		h := drawUsed(t, limits)
		n := rapid.OneOf(rapid.IntRange(1, 12), rapid.IntRange(1, 60)).Draw(t, "n")
		want := h.limiter.Next(h.now, n)
		for range n {
			h.start("a", 0)
		}
		exact := n == 1 || len(limits.Quotas) == 0 || limits.PerSecond == 0 && n <= least(limits.Quotas)
		if got := h.now; got.Before(want) || exact && !got.Equal(want) {
			t.Fatalf("%+v: turn %d: got %s after what Next named (exact: %t)", limits, n, got.Sub(want), exact)
		}
	})
}

func TestTurnBeyondTheQuotaIsNoSoonerThanTheLastInIt(t *testing.T) {
	l := full(Limits{Quotas: []Quota{{Starts: 3, Window: 10 * time.Second}}})
	l.Start(origin)
	now := origin.Add(time.Second)
	for n, want := range map[int]time.Duration{1: 0, 2: 0, 3: 9200 * time.Millisecond, 4: 9200 * time.Millisecond, 1_000_000: 9200 * time.Millisecond} {
		if got := l.Next(now, n).Sub(now); got != want {
			t.Errorf("turn %d of 3 in 10s, one started a second ago: got in %s, want in %s", n, got, want)
		}
	}
	if got := l.Due(now, now.Add(time.Hour)); got != 3 {
		t.Errorf("turns due in an hour: got %d, want 3", got)
	}
}

// What a plain count over a window and two slices allows is allowed: so nothing waits longer than it must, and a
// state that comes back is as good as one that was never away.
func TestNoTurnWaitsForStartsOlderThanAWindowAndTwoSlices(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := Limits{Quotas: drawQuotas(t)}
		h := newHistory(limits, Limit{})
		for range rapid.IntRange(1, 60).Draw(t, "rounds") {
			h.goOn(drawSpan(t, limits, "idle"))
			if rapid.IntRange(0, 4).Draw(t, "release") == 0 {
				if err := h.release(drawSpan(t, limits, "away"), limits, Limit{}); err != nil {
					t.Fatal(err)
				}
			}
			want := h.now
			for _, q := range limits.Quotas {
				if i := len(h.starts) - q.Starts; i >= 0 {
					want = latest(want, h.starts[i].at.Add(q.Window+2*q.Window/100))
				}
			}
			if got := h.limiter.Next(h.now, 1); got.After(want) {
				t.Fatalf("%+v: next turn: got in %s, want in %s at the latest", limits, got.Sub(h.now), want.Sub(h.now))
			}
			h.start("a", 0)
		}
	})
}

func TestNothingStartsInAPauseAndNothingIsSavedUpForItsEnd(t *testing.T) {
	limits := Limits{Limit: Limit{PerSecond: 10, Burst: 5, Headroom: 0.01}}
	l := full(limits)
	l.Pause(origin.Add(time.Minute))
	for _, before := range []time.Duration{time.Minute, time.Second, 1} {
		if got := l.Due(origin, origin.Add(time.Minute-before)); got != 0 {
			t.Errorf("turns due %s before the end: got %d, want 0", before, got)
		}
	}
	first := l.Next(origin, 1).Sub(origin)
	if want := time.Minute + 100*time.Millisecond; first < want || first > want+2*time.Millisecond {
		t.Errorf("first turn: got after %s, want an interval after the end, %s", first, want)
	}
	end, starts := origin.Add(time.Minute), 0
	for now := l.Next(origin, 1); now.Before(end.Add(time.Second)); now = l.Next(now, 1) {
		l.Start(now)
		starts++
	}
	if starts > 10 {
		t.Errorf("starts in the first second after a pause: got %d, want at most 10", starts)
	}
}

func TestPauseThatIsLiftedExtendedOrShortenedEndsWhenSaid(t *testing.T) {
	limits := Limits{Limit: Limit{PerSecond: 10, Burst: 5}, Quotas: []Quota{{Starts: 50, Window: time.Hour}}}
	for name, c := range map[string]struct {
		pauses []time.Duration // from origin; told a second apart
		want   time.Duration   // the first turn
	}{
		"as said":   {[]time.Duration{time.Minute}, time.Minute + 100*time.Millisecond},
		"extended":  {[]time.Duration{time.Minute, time.Hour}, time.Hour + 100*time.Millisecond},
		"shortened": {[]time.Duration{time.Hour, time.Minute}, time.Minute + 100*time.Millisecond},
		"lifted":    {[]time.Duration{time.Hour, time.Second}, time.Second + 100*time.Millisecond},
		"again":     {[]time.Duration{time.Hour, time.Second, time.Minute}, time.Minute + 100*time.Millisecond},
	} {
		l, now := full(limits), origin
		for i, pause := range c.pauses {
			now = origin.Add(time.Duration(i) * time.Second)
			l.Pause(origin.Add(pause))
		}
		if got := l.Next(now, 1).Sub(origin); got != c.want {
			t.Errorf("%s: first turn: got after %s, want after %s", name, got, c.want)
		}
	}
}

func TestPauseWithoutAPaceEndsWithTheQuotaAsItIs(t *testing.T) {
	l := full(Limits{Quotas: []Quota{{Starts: 3, Window: time.Hour}}})
	l.Start(origin)
	end := origin.Add(time.Minute)
	l.Pause(end)
	if got, want := l.Next(origin, 1), end; !got.Equal(want) {
		t.Errorf("first turn: got %s after the end, want at the end", got.Sub(want))
	}
	if got := l.Due(origin, end); got != 2 {
		t.Errorf("turns due at the end: got %d, want 2", got)
	}
}

func TestReloadOfQuotasKeepsWhatWasCountedAndThePace(t *testing.T) {
	pace := Limit{PerSecond: 10, Burst: 9}
	l := full(Limits{pace, []Quota{{5, time.Hour}}})
	for range 4 {
		l.Start(origin)
	}
	for _, c := range []struct {
		quotas []Quota
		want   int
	}{
		{[]Quota{{4, time.Hour}}, 0},
		{[]Quota{{2, time.Hour}}, 0}, // fewer than have started
		{[]Quota{{7, time.Hour}}, 3},
		{[]Quota{{1, time.Minute}, {7, time.Hour}}, 1}, // the minute counts from now
		{[]Quota{{7, time.Hour}, {2, time.Minute}}, 2},
		{nil, 5},
		{[]Quota{{3, time.Hour}}, 3}, // as a new one
	} {
		l.SetLimits(Limits{pace, c.quotas}, origin)
		if got := l.Due(origin, origin); got != c.want {
			t.Errorf("quotas %v after four starts: turns due: got %d, want %d", c.quotas, got, c.want)
		}
	}
}

func TestClockThatStepsBackGrantsNoQuota(t *testing.T) {
	l := full(Limits{Quotas: []Quota{{3, 10 * time.Second}}})
	later := origin.Add(5 * time.Second)
	l.Count(later, 2)
	l.State(origin)
	l.Count(origin, 0)
	if got := l.Next(origin, 1); got.Before(later) {
		t.Errorf("next turn after a step back of 5s: got in %s, want when the clock has caught up", got.Sub(origin))
	}
	l.Count(origin, 1)
	if got, want := l.Next(later, 1), later.Add(10200*time.Millisecond); !got.Equal(want) {
		t.Errorf("turn after all three: got in %s, want in 10.2s: the third counts as the latest", got.Sub(later))
	}
}
