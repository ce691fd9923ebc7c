package ratelimit

import (
	"fmt"
	"testing"
	"time"
)

// backlog starts whatever is due, for so many windows after the first two, and returns the starts per second.
func backlog(limits Limits, window time.Duration, windows int) float64 {
	l, now, starts := full(limits), origin, 0
	var from time.Time
	for now.Sub(origin) < time.Duration(windows+2)*window {
		due := l.Due(now, now)
		if limits.PerSecond == 0 {
			l.Count(now, due) // the same, and no work if they are a thousand million
		} else {
			for range due {
				l.Start(now)
			}
		}
		if starts += due; from.IsZero() && now.Sub(origin) > 2*window {
			from, starts = now, due
		}
		now = l.Next(now, 1)
	}
	return float64(starts) / now.Sub(from).Seconds()
}

func TestQuotaIsReachedTo97AndAHalfPercent(t *testing.T) {
	for _, w := range []time.Duration{time.Second, 10 * time.Second, time.Hour, 31 * 24 * time.Hour} {
		for _, n := range []int{1, 2, 7, 100, 5000, 1_000_000_000} {
			quota := float64(n) / w.Seconds()
			for _, times := range []float64{0, 0.5, 1, 1.5, 10} {
				pace := Limit{PerSecond: times * quota, Burst: 1, Headroom: 0.01}
				if pace.PerSecond > 10_000 || n > 5000 && times > 0 {
					continue
				}
				name := fmt.Sprintf("%d in %s, pace %g per second", n, w, pace.PerSecond)
				want := 0.975 * quota
				if times > 0 {
					want = min(want, 0.985*pace.PerSecond)
				}
				if got := backlog(Limits{pace, []Quota{{n, w}}}, w, 6); got < want || got > quota {
					t.Errorf("%s: got %.2f %% of the quota, want %.2f to 100", name, 100*got/quota, 100*want/quota)
				}
			}
		}
	}
}
