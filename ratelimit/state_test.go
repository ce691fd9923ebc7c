package ratelimit

import (
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const day = 24 * time.Hour

// busy has started all that it may, evenly; its slices have almost passed.
func busy(quotas []Quota) *Limiter {
	l := full(Limits{Quotas: quotas})
	for _, c := range l.quotas {
		for i := range counted {
			c.start(origin.Add(time.Duration(i)*c.slice()), c.quota.Starts/counted)
		}
		c.start(c.began, c.left(c.began))
		c.began = origin.Add(1 - c.slice())
	}
	return l
}

func TestStateIsSmall(t *testing.T) {
	for name, c := range map[string]struct {
		quotas []Quota
		most   int
	}{
		"ordinary": {[]Quota{{100, 10 * time.Second}, {1000, time.Minute}, {5000, time.Hour}, {100_000, day}}, 1300},
		"largest":  {[]Quota{{1e9, 28 * day}, {1e9, 29 * day}, {1e9, 30 * day}, {1e9, 31 * day}}, 2600},
	} {
		text := busy(c.quotas).State(origin).Quotas
		t.Logf("%s: %d bytes", name, len(text))
		if len(text) > c.most {
			t.Errorf("%s: state of four quotas: got %d bytes, want at most %d", name, len(text), c.most)
		}
		if _, err := New(Limits{Quotas: c.quotas}, origin, Saved{Quotas: text}); err != nil {
			t.Errorf("%s: read it again: got %v, want no error", name, err)
		}
	}
}

func TestRestoredStateGrantsExactlyWhatTheOldOneWould(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := drawLimits(t)
		h := drawUsed(t, limits)
		state, away := h.limiter.State(h.now), drawSpan(t, limits, "away")
		now := h.now.Add(away)
		restored, err := New(limits, now, Saved{EmptyFor: state.EmptyFor + away, Quotas: state.Quotas, Age: away})
		if err != nil {
			t.Fatalf("restore: got %v, want no error", err)
		}
		restored.Pause(h.paused)
		for range rapid.IntRange(1, 30).Draw(t, "looks") {
			n := rapid.IntRange(1, 40).Draw(t, "n")
			if got, want := restored.Next(now, n), h.limiter.Next(now, n); !got.Equal(want) {
				t.Fatalf("%+v: turn %d: got in %s, want in %s", limits, n, got.Sub(now), want.Sub(now))
			}
			until := now.Add(drawSpan(t, limits, "ahead"))
			if got, want := restored.Due(now, until), h.limiter.Due(now, until); got != want {
				t.Fatalf("%+v: turns due until %s ahead: got %d, want %d", limits, until.Sub(now), got, want)
			}
			if now = latest(now, restored.Next(now, 1)); rapid.Bool().Draw(t, "start") {
				restored.Start(now)
				h.limiter.Start(now)
			}
			now = now.Add(drawSpan(t, limits, "idle"))
		}
	})
}

func TestStateOfAPauseIsEmptyAtItsEnd(t *testing.T) {
	limits := Limits{Limit: Limit{PerSecond: 10, Burst: 50}}
	l := full(limits)
	l.Pause(origin.Add(time.Minute))
	state := l.State(origin)
	if got, want := state.EmptyFor, -time.Minute; got != want {
		t.Errorf("empty for, a minute before the end: got %s, want %s", got, want)
	}
	now := origin.Add(61 * time.Second)
	restored, _ := New(limits, now, Saved{EmptyFor: state.EmptyFor + 61*time.Second})
	if got := restored.Due(now, now); got != 10 {
		t.Errorf("turns due a second after the end: got %d, want 10", got)
	}
}

func TestStateThatIsOlderIsChargedWithWhatMayHaveStarted(t *testing.T) {
	limits := Limits{Quotas: []Quota{{10, time.Hour}, {4, time.Minute}}}
	l := full(limits)
	l.Start(origin)
	state := l.State(origin)
	now := origin.Add(30 * time.Minute)
	restored, err := New(limits, now, Saved{Quotas: state.Quotas, Age: 30 * time.Minute, Uncounted: 3})
	if err != nil {
		t.Fatal(err)
	}
	if got := restored.Due(now, now); got != 1 {
		t.Errorf("turns due at once: got %d, want 1: 4 per minute, of which 3 may have started", got)
	}
	later := now.Add(2 * time.Minute)
	if got := restored.Due(later, later); got != 4 {
		t.Errorf("turns due two minutes later: got %d, want 4", got)
	}
	restored.Count(later, 4)
	later = later.Add(2 * time.Minute)
	if got := restored.Due(later, later); got != 2 {
		t.Errorf("turns due after four more: got %d, want 2 of 10 per hour", got)
	}
}

func TestRecountCountsWhatIsKnownAndNothingElse(t *testing.T) {
	limits := Limits{Quotas: []Quota{{10, time.Hour}, {5, time.Minute}}}
	l := full(limits)
	l.Count(origin, 5)
	now := origin.Add(time.Second)
	l.Recount(now, time.Hour, []Past{{time.Minute, 2}, {59 * time.Minute, 3}, {0, 1}, {2 * time.Hour, 9}, {-time.Second, 1}})
	l.Recount(now, time.Minute, nil)
	l.Recount(now, time.Second, []Past{{0, 5}}) // no such quota
	for ahead, want := range map[time.Duration]int{0: 3, 3 * time.Minute: 5, 65 * time.Minute: 5} {
		if got := l.Due(now, now.Add(ahead)); got != want {
			t.Errorf("turns due in %s: got %d, want %d", ahead, got, want)
		}
	}
	l.SetLimits(Limits{Quotas: limits.Quotas[:1]}, now)
	for ahead, want := range map[time.Duration]int{0: 3, 3 * time.Minute: 6, 63 * time.Minute: 10} {
		if got := l.Due(now, now.Add(ahead)); got != want {
			t.Errorf("10 per hour alone: turns due in %s: got %d, want %d", ahead, got, want)
		}
	}
}

func TestUnreadableStateIsAnErrorAndQuotasCountFromNow(t *testing.T) {
	limits := Limits{Quotas: []Quota{{3, time.Hour}}}
	for _, text := range []string{
		"garbage", ";", ":", "::", "3600000000000", "3600000000000:0", "3600000000000:0:1:2", "3600000000000:0:1;",
		"3600000000000:-1:1", "3600000000000:36000000000:1", "999999999:0:1", "8640000000000001:0:1", "-3600000000000:0:1",
		"3600000000000:0:-1", "3600000000000:0:,", "3600000000000:0:1,,1", "3600000000000:0:1 ", " 3600000000000:0:1",
		"3600000000000:0:zzzzzz", "3600000000000:0:2147483648", "99999999999999999999:0:1", "3600000000000:99999999999999999999:1",
		"3600000000000:0:1" + strings.Repeat(",1", counted), "3600000000000:0:\x00", "3600000000000:0:é", strings.Repeat("9", 1<<20),
	} {
		l, err := New(limits, origin, Saved{Quotas: text, Uncounted: 1})
		if err == nil {
			t.Errorf("%.60q: got no error, want one", text)
		} else if len(err.Error()) > 600 {
			t.Errorf("%.60q: got an error of %d bytes, want a short one", text, len(err.Error()))
		}
		if got := l.Due(origin, origin); got != 2 {
			t.Errorf("%.60q: turns due: got %d, want 2: 3 per hour, of which one may have started", text, got)
		}
	}
}

// Whatever was stored, and however long ago it is said to be: no panic, never more than the quota at once, and never
// shut for longer than a window and two slices.
func FuzzSavedQuotas(f *testing.F) {
	for _, age := range []int64{0, 1, -1, int64(time.Hour), math.MaxInt64, math.MinInt64} {
		f.Add("3600000000000:1234567:1,,5", age, age, uint16(1))
		f.Add(busy([]Quota{{5000, time.Hour}, {1e9, 31 * day}}).State(origin).Quotas, age, int64(0), uint16(0))
		f.Add("1000000000:9999999:zik0zj;10000000000:0:1,0,0,2;3600000000000:0:;2678400000000000:5:9", int64(7), age, uint16(3))
	}
	f.Fuzz(func(t *testing.T, text string, age, emptyFor int64, uncounted uint16) {
		limits := Limits{Limit{PerSecond: 10, Burst: 3}, []Quota{{3, time.Second}, {7, 10 * time.Second}, {5000, time.Hour}, {1e9, 31 * day}}}
		l, err := New(limits, origin, Saved{time.Duration(emptyFor), text, time.Duration(age), int(uncounted)})
		if got, want := l.Due(origin, origin), 3; got > want {
			t.Fatalf("turns due at once: got %d, want at most %d", got, want)
		}
		for _, q := range limits.Quotas {
			longest := q.Window + 2*q.Window/100
			alone, _ := New(Limits{Quotas: []Quota{q}}, origin, Saved{Quotas: text, Age: time.Duration(age), Uncounted: int(uncounted)})
			if got := alone.Due(origin, origin); got > q.Starts || err != nil && got != max(0, q.Starts-int(uncounted)) {
				t.Fatalf("%v: turns due at once: got %d (error %v)", q, got, err)
			}
			if got := alone.Next(origin, q.Starts).Sub(origin); got < 0 || got > longest {
				t.Fatalf("%v: shut for %s, want at most %s", q, got, longest)
			}
			if got := alone.Due(origin, origin.Add(longest)); got != q.Starts {
				t.Fatalf("%v: turns due in %s: got %d, want all", q, longest, got)
			}
		}
	})
}
