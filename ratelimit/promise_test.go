package ratelimit

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"queuekeeper/internal/windows"
)

// over slides every half-open window over the starts, by the definition: a window from the i-th to the j-th start
// must be longer than the time between them, so that the shortest such window is the one with the least allowed.
// It returns "" if none holds too many.
func over(starts []time.Time, limit Limit) string {
	starts = slices.SortedFunc(slices.Values(starts), time.Time.Compare)
	for i := range starts {
		for j := i; j < len(starts); j++ {
			w := max(windows.Shortest(limit.PerSecond), starts[j].Sub(starts[i])+1)
			if got, want := j-i+1, windows.Allowed(limit.PerSecond, limit.Burst, w); got > want {
				return fmt.Sprintf("%d starts in a window of %s, at most %d allowed", got, w, want)
			}
		}
	}
	return ""
}

// queue drives a Pace as a child does: it asks for the next turn and starts when it has come, or late.
type queue struct {
	limit  Limit
	pace   *Pace
	now    time.Time
	starts []time.Time
}

func newQueue(limit Limit, emptyFor time.Duration) *queue {
	now := time.Unix(1_000_000_000, 0)
	return &queue{limit: limit, pace: NewPace(limit, now, emptyFor), now: now}
}

func (q *queue) start(late time.Duration) {
	q.now = q.pace.Next(q.now, 1).Add(late)
	q.pace.Start(q.now)
	q.starts = append(q.starts, q.now)
}

// catchUp ends a step back of the clock: the state of a Pace is passed on by clocks that agree.
func (q *queue) catchUp() {
	for _, start := range q.starts {
		q.now = latest(q.now, start)
	}
}

func drawLimit(t *rapid.T, name string, headroom float64) Limit {
	return Limit{
		PerSecond: rapid.OneOf(
			rapid.SampledFrom([]float64{0.001, 0.2, 0.3333333333, 0.5, 0.9999, 1, 3, 10, 50, 200, 10_000}),
			rapid.Float64Range(0.001, 10_000),
		).Draw(t, name+" per second"),
		Burst:    rapid.OneOf(rapid.Just(1), rapid.IntRange(1, 8)).Draw(t, name+" burst"),
		Headroom: headroom,
	}
}

func drawHeadroom(t *rapid.T) float64 {
	return rapid.SampledFrom([]float64{0, 0.001, 0.01, 0.01, 0.01, 0.05, 0.5}).Draw(t, "headroom")
}

// drawTime draws no time, little, or up to a few intervals.
func drawTime(t *rapid.T, interval time.Duration, name string) time.Duration {
	return rapid.OneOf(
		rapid.Just(time.Duration(0)),
		rapid.Map(rapid.IntRange(0, 6_000_000), func(ns int) time.Duration { return time.Duration(ns) }),
		rapid.Map(rapid.Float64Range(0, 12), func(k float64) time.Duration { return time.Duration(k * float64(interval)) }),
	).Draw(t, name)
}

func TestNoWindowHoldsTooManyStarts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := drawLimit(t, "limit", drawHeadroom(t))
		q := newQueue(limit, 1000*time.Hour)
		interval := q.pace.interval
		start := func(t *rapid.T) { q.start(drawTime(t, interval, "late")) }
		t.Repeat(map[string]func(*rapid.T){
			"start":       start,
			"start again": start,
			"sprint": func(t *rapid.T) {
				for range rapid.IntRange(2, 20).Draw(t, "starts") {
					q.start(0)
				}
			},
			"idle": func(t *rapid.T) { q.now = q.now.Add(drawTime(t, interval, "idle")) },
			"release and acquire": func(t *rapid.T) {
				q.catchUp()
				emptyFor, away := q.pace.EmptyFor(q.now), drawTime(t, interval, "away")
				q.now = q.now.Add(away)
				q.pace = NewPace(limit, q.now, emptyFor+away)
			},
			"die": func(t *rapid.T) {
				q.catchUp()
				q.pace = NewPace(limit, q.now, 0)
			},
			"end a pause": func(t *rapid.T) { q.pace.Empty(q.now) },
			"reload":      func(t *rapid.T) { q.pace.SetLimit(limit, q.now) },
			"only look": func(t *rapid.T) {
				q.pace.Due(q.now, q.now.Add(drawTime(t, interval, "ahead")))
				q.pace.Next(q.now, rapid.IntRange(1, 9).Draw(t, "n"))
				q.pace.EmptyFor(q.now)
			},
			"step the clock back": func(t *rapid.T) { q.now = q.now.Add(-drawTime(t, interval, "back")) },
			"": func(t *rapid.T) {
				if fault := over(q.starts, limit); fault != "" {
					t.Fatalf("%+v: %s", limit, fault)
				}
			},
		})
	})
}

func TestReloadLetsNoBurstThrough(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := newQueue(drawLimit(t, "first", drawHeadroom(t)), 1000*time.Hour)
		highest, slowest := q.limit, q.limit.PerSecond
		for range rapid.IntRange(1, 5).Draw(t, "reloads") {
			for range rapid.IntRange(0, 12).Draw(t, "starts") {
				q.start(drawTime(t, q.pace.interval, "late"))
			}
			q.now = q.now.Add(drawTime(t, q.pace.interval, "idle"))
			q.limit = drawLimit(t, "next", drawHeadroom(t))
			q.pace.SetLimit(q.limit, q.now)
			highest.PerSecond = max(highest.PerSecond, q.limit.PerSecond)
			highest.Burst = max(highest.Burst, q.limit.Burst)
			slowest = min(slowest, q.limit.PerSecond)
			since := len(q.starts)
			for range rapid.IntRange(0, 30).Draw(t, "starts after") {
				q.start(drawTime(t, q.pace.interval, "late"))
			}
			if fault := over(q.starts[since:], q.limit); fault != "" {
				t.Fatalf("since the reload to %+v: %s", q.limit, fault)
			}
		}
		// Across reloads: no more than the highest limit allows, in windows long enough for the slowest.
		w := windows.Shortest(slowest)
		if got, want := windows.Largest(q.starts, w), windows.Allowed(highest.PerSecond, highest.Burst, w); got > want {
			t.Fatalf("across reloads: got %d starts in %s, want at most %d", got, w, want)
		}
	})
}

func TestBackloggedQueueReachesItsLimit(t *testing.T) {
	for _, perSecond := range []float64{0.5, 10, 50, 200, 10_000} {
		for _, burst := range []int{1, 5} {
			q := newQueue(Limit{PerSecond: perSecond, Burst: burst, Headroom: 0.01}, 0)
			random := rand.New(rand.NewPCG(1, 2))
			starts := 300 + int(perSecond)
			for range starts {
				late := time.Duration(0) // of a timer; a turn that has come already needs none
				if q.pace.Next(q.now, 1).After(q.now) {
					late = time.Duration(random.IntN(2_000_000))
				}
				q.start(late)
			}
			mean := float64(starts-1) / q.starts[starts-1].Sub(q.starts[0]).Seconds()
			if share := mean / perSecond; share < 0.985 {
				t.Errorf("%g per second, burst %d, timers up to 2 ms late: got %.2f %% of the limit, want at least 98.5",
					perSecond, burst, 100*share)
			}
		}
	}
}
