package handler

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"queuekeeper/jobs"
)

func TestOutcomeTable(t *testing.T) {
	boom := errors.New("boom")
	for _, c := range []struct {
		err  error
		want Outcome
	}{
		{nil, Outcome{Kind: jobs.KindDone}},
		{boom, Outcome{jobs.KindFail, time.Second, "", "boom"}},
		{jobs.Permanent(boom), Outcome{jobs.KindDead, 0, "", "boom"}},
		{fmt.Errorf("sync: %w", jobs.Permanent(boom)), Outcome{jobs.KindDead, 0, "", "sync: boom"}},
		{jobs.RetryAfter(time.Hour, boom), Outcome{jobs.KindFail, time.Hour, "", "boom"}},
		{jobs.RetryAfter(0, boom), Outcome{jobs.KindFail, 0, "", "boom"}},
		{jobs.RetryAfter(-time.Hour, boom), Outcome{jobs.KindFail, 0, "", "boom"}},
		{jobs.Throttled(time.Minute, boom), Outcome{jobs.KindThrottled, time.Minute, "", "boom"}},
		{jobs.Throttled(0, boom), Outcome{jobs.KindThrottled, 0, "", "boom"}},
		{jobs.Throttled(-1, boom), Outcome{jobs.KindThrottled, 0, "", "boom"}},
		{jobs.ThrottledIn(jobs.ScopeLane, time.Minute, boom), Outcome{jobs.KindThrottled, time.Minute, jobs.ScopeLane, "boom"}},
	} {
		if got := Judge(c.err, time.Second); got != c.want {
			t.Errorf("Judge(%#v): got %+v, want %+v", c.err, got, c.want)
		}
	}
}

func TestMarkAroundNoErrorIsSurvived(t *testing.T) {
	if got := Judge(jobs.Permanent(nil), time.Second); got.Kind != jobs.KindDead || got.Error == "" {
		t.Errorf("Judge of Permanent(nil): got %+v, want dead with a text", got)
	}
}

// PO06.
func TestBackoffIsBoundedForEveryCount(t *testing.T) {
	counts := []int{-1, 1000, math.MaxInt32, math.MaxInt}
	for n := range 201 {
		counts = append(counts, n)
	}
	for _, base := range []time.Duration{time.Millisecond, time.Second, time.Hour} {
		for _, most := range []time.Duration{10 * time.Minute, 24 * time.Hour, math.MaxInt64} {
			for _, n := range counts {
				low, high := min(base, most)/2, most
				for _, random := range []float64{0, 0.5, math.Nextafter(1, 0), 1} {
					if got := Backoff(n, base, most, random); got < low || got > high {
						t.Errorf("Backoff(%d, %v, %v, %v): got %v, want %v to %v", n, base, most, random, got, low, high)
					}
				}
			}
		}
	}
}

func TestBackoffDoublesUpToTheMost(t *testing.T) {
	last := time.Duration(0)
	for n := range 201 {
		got := Backoff(n, time.Second, 10*time.Minute, 0)
		want := 10 * time.Minute
		if n < 10 {
			want = min(want, time.Second<<n)
		}
		if got != want || got < last {
			t.Errorf("Backoff(%d) before jitter: got %v after %v, want %v", n, got, last, want)
		}
		last = got
	}
	if got := Backoff(1, time.Second, time.Minute, 1); got != time.Second {
		t.Errorf("Backoff(1) with all of the jitter: got %v, want half of 2s", got)
	}
}
