package ratelimit

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func drawLimits(t *rapid.T) Limits {
	return Limits{Limit: drawPace(t), Quotas: drawQuotas(t)}
}

func drawPace(t *rapid.T) Limit {
	return Limit{
		PerSecond: rapid.SampledFrom([]float64{0, 0, 0.2, 3, 10, 200}).Draw(t, "per second"),
		Burst:     rapid.IntRange(1, 5).Draw(t, "burst"),
		Headroom:  rapid.SampledFrom([]float64{0, 0.01, 0.1}).Draw(t, "headroom"),
	}
}

var quotaWindows = []time.Duration{time.Second, 1500 * time.Millisecond, 10 * time.Second, time.Hour, 31 * 24 * time.Hour}

func drawQuotas(t *rapid.T) (quotas []Quota) {
	for _, w := range rapid.SliceOfNDistinct(rapid.SampledFrom(quotaWindows), 0, 4, rapid.ID).Draw(t, "windows") {
		quotas = append(quotas, Quota{Starts: rapid.OneOf(rapid.IntRange(1, 5), rapid.IntRange(1, 40)).Draw(t, "starts"), Window: w})
	}
	return quotas
}

func drawPerLane(t *rapid.T) Limit {
	return Limit{
		PerSecond: rapid.SampledFrom([]float64{0, 0.5, 3, 50}).Draw(t, "per second and lane"),
		Headroom:  rapid.SampledFrom([]float64{0, 0.01}).Draw(t, "headroom of a lane"),
	}
}

// drawSpan draws no time, or some of what matters to the limits: intervals, slices to the nanosecond, windows.
func drawSpan(t *rapid.T, limits Limits, name string) time.Duration {
	spans := []*rapid.Generator[time.Duration]{rapid.Just(time.Duration(0)), times(rapid.Float64Range(0, 1), 6*time.Millisecond)}
	if r := limits.rule(); r.interval > 0 {
		spans = append(spans, times(rapid.Float64Range(0, 12), r.interval))
	}
	for _, q := range limits.Quotas {
		slice := q.Window / 100
		around := rapid.Custom(func(t *rapid.T) time.Duration {
			k := rapid.OneOf(rapid.IntRange(0, 4), rapid.IntRange(96, 104)).Draw(t, "slices")
			return max(0, time.Duration(k)*slice+time.Duration(rapid.IntRange(-1, 1).Draw(t, "ns")))
		})
		spans = append(spans, around, times(rapid.Float64Range(0, 1.2), q.Window))
	}
	return rapid.OneOf(spans...).Draw(t, name)
}

func times(k *rapid.Generator[float64], unit time.Duration) *rapid.Generator[time.Duration] {
	return rapid.Map(k, func(k float64) time.Duration { return time.Duration(k * float64(unit)) })
}

// drawChange is a reload: of one thing or of all.
func drawChange(t *rapid.T, limits Limits) Limits {
	limits.Quotas = slices.Clone(limits.Quotas)
	switch rapid.IntRange(0, 3).Draw(t, "change") {
	case 0:
		limits.Limit = drawPace(t)
	case 1:
		for i := range limits.Quotas {
			limits.Quotas[i].Starts = rapid.IntRange(1, 20).Draw(t, "starts")
		}
	case 2:
		limits.Quotas = drawQuotas(t)
	case 3:
		return drawLimits(t)
	}
	return limits
}

// act is what can happen to a queue. A time is drawn from what matters to its limits.
func act(h *history) map[string]func(*rapid.T) {
	lane := rapid.SampledFrom([]string{"a", "b", "c"})
	start := func(t *rapid.T) {
		late := drawSpan(t, Limits{Limit: h.limits.Limit}, "late")
		h.start(lane.Draw(t, "lane"), late)
		if fault := h.fault(); fault != "" {
			t.Fatalf("%+v, per lane %+v: %s", h.limits, h.perLane, fault)
		}
	}
	noError := func(t *rapid.T, err error) {
		if err != nil {
			t.Fatalf("restore: got %v, want no error", err)
		}
	}
	changed := func(t *rapid.T) (Limits, Limit) {
		if rapid.IntRange(0, 3).Draw(t, "with other limits") > 0 {
			return h.limits, h.perLane
		}
		return drawChange(t, h.limits), drawPerLane(t)
	}
	return map[string]func(*rapid.T){
		"start":       start,
		"start again": start,
		"start a few": func(t *rapid.T) {
			for range rapid.IntRange(2, 20).Draw(t, "starts") {
				h.start(lane.Draw(t, "lane"), 0)
				if fault := h.fault(); fault != "" {
					t.Fatalf("%+v, per lane %+v: %s", h.limits, h.perLane, fault)
				}
			}
		},
		"idle":  func(t *rapid.T) { h.goOn(drawSpan(t, h.limits, "idle")) },
		"store": func(t *rapid.T) { h.store() },
		"look": func(t *rapid.T) {
			h.limiter.Next(h.now, rapid.IntRange(1, 50).Draw(t, "n"))
			h.limiter.Due(h.now, h.now.Add(drawSpan(t, h.limits, "ahead")))
			h.limiter.State(h.now)
			h.lanes.Waiting(h.now, h.now.Add(drawSpan(t, h.limits, "before")))
			h.lanes.EmptyFor(h.now)
		},
		"step the clock back": func(t *rapid.T) { h.goOn(-drawSpan(t, h.limits, "back")) },
		"reload": func(t *rapid.T) {
			h.reload(drawChange(t, h.limits), rapid.SampledFrom([]Limit{h.perLane, drawPerLane(t)}).Draw(t, "lane limit"))
		},
		"release and acquire": func(t *rapid.T) {
			limits, perLane := changed(t)
			noError(t, h.release(drawSpan(t, h.limits, "away"), limits, perLane))
		},
		"die": func(t *rapid.T) {
			limits, perLane := changed(t)
			away, lost := drawSpan(t, h.limits, "away"), drawSpan(t, h.limits, "age lost")
			noError(t, h.die(away, lost, rapid.IntRange(0, 2).Draw(t, "too many uncounted"), limits, perLane))
		},
		"lose the state": func(t *rapid.T) {
			if err := h.lose(); err != nil {
				t.Fatal(err)
			}
		},
		"pause": func(t *rapid.T) { h.pause(latest(h.paused, h.now.Add(drawSpan(t, h.limits, "pause")))) },
		"pause less": func(t *rapid.T) {
			if until := h.now.Add(drawSpan(t, h.limits, "pause")); until.Before(h.paused) {
				h.pause(until)
			}
		},
		"lift the pause": func(t *rapid.T) {
			if h.now.Before(h.paused) {
				h.pause(h.now)
			}
		},
		"pause a lane": func(t *rapid.T) {
			lane, until := lane.Draw(t, "lane"), h.now.Add(drawSpan(t, h.limits, "pause"))
			h.lanesPaused[lane] = latest(h.lanesPaused[lane], until)
			h.lanes.Pause(lane, until)
		},
		"lift the pauses of lanes": func(t *rapid.T) {
			clear(h.lanesPaused)
			h.lanes.Lift(h.now)
		},
	}
}

// Pace, quotas, pauses and lanes together, through whatever happens to a queue; see history.fault for what is held.
func TestNoHistoryHoldsTooManyStarts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		t.Repeat(act(newHistory(drawLimits(t), drawPerLane(t))))
	})
}
