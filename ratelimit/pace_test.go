package ratelimit

import (
	"math"
	"testing"
	"time"

	"golang.org/x/time/rate"
	"pgregory.net/rapid"

	"queuekeeper/internal/windows"
)

const longAgo = 1000 * time.Hour

func (q *queue) startMany(n int) {
	for range n {
		q.start(0)
	}
}

// RA01
func TestIdleTimeIsNotSavedUp(t *testing.T) {
	for _, c := range []struct {
		perSecond float64
		jobs      int
	}{{2, 20}, {10, 11}} {
		q := newQueue(Limit{PerSecond: c.perSecond, Burst: 1, Headroom: 0.01}, longAgo)
		q.startMany(int(c.perSecond))
		q.now = q.now.Add(time.Minute)
		q.startMany(c.jobs)
		if got, want := windows.Largest(q.starts, time.Second), int(c.perSecond); got > want {
			t.Errorf("%g per second after 60 s idle: got %d starts in a second, want at most %d", c.perSecond, got, want)
		}
	}
}

// RA03
func TestGapsOfASlowQueueAreWhole(t *testing.T) {
	for name, emptyFor := range map[string]time.Duration{"first start": longAgo, "already running": 300 * time.Millisecond} {
		q := newQueue(Limit{PerSecond: 0.5, Burst: 1, Headroom: 0.01}, emptyFor)
		q.startMany(3)
		for i := 1; i < 3; i++ {
			if got := q.starts[i].Sub(q.starts[i-1]); got < 2*time.Second {
				t.Errorf("%s: gap before start %d: got %s, want at least 2s", name, i+1, got)
			}
		}
	}
}

// RA05, RA06
func TestOddRatesMeanWhatTheySay(t *testing.T) {
	for _, perSecond := range []float64{0.001, 0.2, 0.3333333333, 0.9999, 10_000} {
		q := newQueue(Limit{PerSecond: perSecond, Burst: 1, Headroom: 0.01}, longAgo)
		if got := q.pace.Next(q.now, 1); !got.Equal(q.now) {
			t.Errorf("%g per second: first turn: got in %s, want now", perSecond, got.Sub(q.now))
		}
		q.startMany(1100)
		mean := q.starts[1099].Sub(q.starts[100]).Seconds() / 999
		if off := mean*perSecond - 1; off < 0 || off > 0.05 {
			t.Errorf("%g per second: mean gap: got %g s, want 1/rate and up to 5 %% more", perSecond, mean)
		}
	}
	q := newQueue(Limit{PerSecond: 0.2, Burst: 1, Headroom: 0.01}, longAgo)
	q.startMany(30)
	if got := windows.Largest(q.starts, time.Minute); got < 11 || got > 12 {
		t.Errorf("0.2 per second: got %d starts in 60 s, want 11 or 12", got)
	}
}

// RA09
func TestLookingSpendsNothing(t *testing.T) {
	q := newQueue(Limit{PerSecond: 1, Burst: 1, Headroom: 0.01}, longAgo)
	for range 600 { // an empty queue, polled every 50 ms for 30 s
		q.pace.Next(q.now, 1)
		q.pace.Due(q.now, q.now.Add(50*time.Millisecond))
		q.pace.EmptyFor(q.now)
		q.now = q.now.Add(50 * time.Millisecond)
	}
	enqueued := q.now
	q.startMany(1)
	if got := q.starts[0].Sub(enqueued); got != 0 {
		t.Errorf("first job on an idle queue: got started after %s, want at once", got)
	}
	q.now = q.now.Add(time.Minute)
	enqueued = q.now
	q.startMany(10)
	if got := q.now.Sub(enqueued); got < 9*time.Second || got > 10*time.Second {
		t.Errorf("ten jobs at one per second: got %s, want 9 s to 10 s", got)
	}
}

// RA13
func TestClockThatStepsGrantsNothing(t *testing.T) {
	limit := Limit{PerSecond: 5, Burst: 1, Headroom: 0.01}
	for name, steps := range map[string][]time.Duration{
		"back":        {-8 * time.Hour},
		"forward":     {8 * time.Hour},
		"alternating": {11 * time.Second, -11 * time.Second, 11 * time.Second, -11 * time.Second},
	} {
		q := newQueue(limit, longAgo)
		for _, step := range steps {
			q.startMany(15) // 3 s
			q.now = q.now.Add(step)
		}
		q.startMany(15)
		if fault := over(q.starts, limit); fault != "" {
			t.Errorf("clock steps %s: %s", name, fault)
		}
	}
}

func TestStateFromAClockThatWentBackCountsAsEmpty(t *testing.T) {
	q := newQueue(Limit{PerSecond: 2, Burst: 3}, -8*time.Hour)
	if got, want := q.pace.Next(q.now, 1).Sub(q.now), 500*time.Millisecond; got != want {
		t.Errorf("next turn: got in %s, want in %s", got, want)
	}
}

func TestStateOfAnUnusedQueueFillsTheBucketAndNoMore(t *testing.T) {
	for _, emptyFor := range []time.Duration{math.MaxInt64, 292 * 365 * 24 * time.Hour, longAgo} {
		q := newQueue(Limit{PerSecond: 2, Burst: 3}, emptyFor)
		if got := q.pace.Due(q.now, q.now); got != 3 {
			t.Errorf("empty %s ago: turns due at once: got %d, want 3, the burst", emptyFor, got)
		}
	}
}

func TestStateComesBackAsItWas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := drawLimit(t, "limit", drawHeadroom(t))
		q := newQueue(limit, longAgo)
		for range rapid.IntRange(0, 9).Draw(t, "starts") {
			q.start(drawTime(t, q.pace.interval, "late"))
		}
		q.now = q.now.Add(drawTime(t, q.pace.interval, "idle"))
		restored := NewPace(limit, q.now, q.pace.EmptyFor(q.now))
		for _, ahead := range []time.Duration{0, q.pace.interval / 2, 3 * q.pace.interval} {
			now := q.now.Add(ahead)
			if got, want := restored.Next(now, 1), q.pace.Next(now, 1); !got.Equal(want) {
				t.Fatalf("next turn %s later: got in %s, want in %s", ahead, got.Sub(now), want.Sub(now))
			}
		}
	})
}

func TestDueCountsTheTurnsThatNextNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := newQueue(drawLimit(t, "limit", drawHeadroom(t)), drawTime(t, time.Second, "empty for"))
		until := q.now.Add(drawTime(t, q.pace.interval, "ahead"))
		due := q.pace.Due(q.now, until)
		if next := q.pace.Next(q.now, due+1); !next.After(until) {
			t.Fatalf("%d turns due until %s ahead, but one more at %s", due, until.Sub(q.now), next.Sub(q.now))
		}
		for i := range min(due, 100) {
			if next := q.pace.Next(q.now, 1); next.After(until) {
				t.Fatalf("%d turns due until %s ahead, but start %d only at %s", due, until.Sub(q.now), i+1, next.Sub(q.now))
			}
			q.pace.Start(latest(q.now, q.pace.Next(q.now, 1)))
		}
	})
}

// x/time/rate, told of every start at its time, is the yardstick for starts that are not late.
func TestTurnsAreThoseOfTheTokenBucket(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := drawLimit(t, "limit", 0)
		q := newQueue(limit, 0)
		bucket := rate.NewLimiter(rate.Limit(limit.PerSecond), limit.Burst)
		bucket.AllowN(q.now, limit.Burst) // a new one is full
		for range 30 {
			q.now = q.now.Add(drawTime(t, q.pace.interval, "idle"))
			want := bucket.ReserveN(q.now, 1).DelayFrom(q.now)
			before := q.now
			q.start(0)
			got := q.now.Sub(before)
			if off := got - want; off < -time.Microsecond || off > time.Microsecond {
				t.Fatalf("%+v: next turn: got in %s, want in %s", limit, got, want)
			}
			q.now = latest(q.now, before.Add(want))
		}
	})
}

func TestNoLimitIsAlwaysNow(t *testing.T) {
	q := newQueue(Limit{Burst: 1, Headroom: 0.01}, 0)
	q.startMany(1000)
	if got := q.starts[999].Sub(q.starts[0]); got != 0 {
		t.Errorf("1000 starts: got %s, want no time", got)
	}
	earlier := q.now.Add(-time.Hour)
	if got := q.pace.Next(earlier, 7); !got.Equal(earlier) {
		t.Errorf("next turn: got in %s, want now", got.Sub(earlier))
	}
	if got := q.pace.Due(q.now, q.now); got != math.MaxInt {
		t.Errorf("turns due: got %d, want math.MaxInt", got)
	}
	if got := q.pace.EmptyFor(q.now); got != 0 {
		t.Errorf("empty for: got %s, want 0: a limit set later must not begin with tokens", got)
	}
}

func TestBucketIsEmptyAfterAReloadAndAPause(t *testing.T) {
	for name, empty := range map[string]func(*queue){
		"pause":           func(q *queue) { q.pace.Empty(q.now) },
		"other limit":     func(q *queue) { q.pace.SetLimit(Limit{PerSecond: 4, Burst: 5}, q.now) },
		"from no limit":   func(q *queue) { q.pace.SetLimit(Limit{}, q.now); q.pace.SetLimit(Limit{PerSecond: 4, Burst: 5}, q.now) },
		"limit and pause": func(q *queue) { q.pace.SetLimit(Limit{PerSecond: 4}, q.now); q.pace.Empty(q.now) },
	} {
		q := newQueue(Limit{PerSecond: 4, Burst: 2}, longAgo)
		empty(q)
		if got, want := q.pace.Next(q.now, 1).Sub(q.now), 250*time.Millisecond; got != want {
			t.Errorf("%s: next turn: got in %s, want in %s", name, got, want)
		}
	}
	q := newQueue(Limit{PerSecond: 4, Burst: 2}, longAgo)
	q.pace.SetLimit(q.limit, q.now)
	if got := q.pace.Next(q.now, 1).Sub(q.now); got != 0 {
		t.Errorf("the same limit again: next turn: got in %s, want now", got)
	}
}

func TestSmallLatenessIsMadeUpAndLargeIsNot(t *testing.T) {
	for _, c := range []struct{ late, want time.Duration }{
		{0, 125 * time.Millisecond},
		{3 * time.Millisecond, 122 * time.Millisecond},
		{5 * time.Millisecond, 120 * time.Millisecond},
		{60 * time.Millisecond, 120 * time.Millisecond},
		{time.Hour, 120 * time.Millisecond},
	} {
		q := newQueue(Limit{PerSecond: 10, Burst: 1, Headroom: 0.2}, 0)
		q.start(c.late)
		if got := q.pace.Next(q.now, 1).Sub(q.now); got != c.want {
			t.Errorf("after a start %s late: next turn: got in %s, want in %s", c.late, got, c.want)
		}
	}
}

func TestReloadThatTakesHeadroomAwayLetsNoStartTooManyThrough(t *testing.T) {
	q := newQueue(Limit{PerSecond: 200, Burst: 1, Headroom: 0.01}, longAgo)
	q.startMany(2) // at once: one ahead of its charge
	q.limit.Headroom = 0
	q.pace.SetLimit(q.limit, q.now)
	q.startMany(300)
	if fault := over(q.starts, q.limit); fault != "" {
		t.Error(fault)
	}
}
