package cli

import (
	"bufio"
	"bytes"
	"strings"
	"testing"
	"time"

	"queuekeeper/config"
	"queuekeeper/jobs"
)

func TestALimitThatCannotBeReachedIsTold(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		mean        time.Duration
		perSecond   float64
		concurrency int
		want        string // "": it can be reached, or nobody knows
	}{
		{0, 10, 1, ""},
		{800 * ms, 0, 1, ""},
		{800 * ms, 10, 0, ""},
		{800 * ms, 10, 8, ""},
		{800 * ms, 10, 7, "jobs take 0.8 s on average, so concurrency = 7 gives at most 8.8/s of the 10/s allowed; concurrency = 8 would reach it"},
		{801 * ms, 10, 2, "jobs take 0.8 s on average, so concurrency = 2 gives at most 2.5/s of the 10/s allowed; concurrency = 9 would reach it"},
		{90 * time.Second, 0.5, 1, "jobs take 90 s on average, so concurrency = 1 gives at most 0.011/s of the 0.5/s allowed; concurrency = 45 would reach it"},
		{12345 * ms, 200, 1, "jobs take 12 s on average, so concurrency = 1 gives at most 0.081/s of the 200/s allowed; to reach it takes concurrency = 2469, and 1000 is the most"},
		{2400 * time.Hour, 10000, 1000, "jobs take 8600000 s on average, so concurrency = 1000 gives at most 0.00012/s of the 10000/s allowed; to reach it takes concurrency = 2147483647, and 1000 is the most"},
	} {
		if got := unreachable(c.mean, c.perSecond, c.concurrency); got != c.want {
			t.Errorf("jobs of %v, %v/s, concurrency %d: got %q, want %q", c.mean, c.perSecond, c.concurrency, got, c.want)
		}
	}
}

func TestCheckWarnsOfLimitsThatCannotBeReached(t *testing.T) {
	var out bytes.Buffer
	p := &program{stdout: bufio.NewWriter(&out), stderr: &out}
	file := config.File{Workers: []config.Worker{
		{Queue: "a", MaxJobsPerSecond: 10, Concurrency: 2},
		{Queue: "b", MaxJobsPerSecond: 10, Concurrency: 8},
		{Queue: "c", Concurrency: 1},
	}}
	p.warnReach(file, []jobs.QueueStatus{{Queue: "a", MeanDuration: 800 * time.Millisecond, MaxJobsPerSecond: 1, Concurrency: 1},
		{Queue: "b", MeanDuration: 800 * time.Millisecond}, {Queue: "c", MeanDuration: time.Hour}, {Queue: "d", MeanDuration: time.Hour}})
	want := `warning: queue a: jobs take 0.8 s on average, so concurrency = 2 gives at most 2.5/s of the 10/s allowed; concurrency = 8 would reach it
`
	if got := out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestCheckShowsTheHeaviestLanes(t *testing.T) {
	for want, weights := range map[string]map[string]int{
		"":                               nil,
		"a 1, b 1":                       {"b": 1, "a": 1},
		"urgent 5, a 2, b 2, … (2 more)": {"b": 2, "a": 2, "urgent": 5, "c": 1, "d": 1},
		"x\ty 1000":                      {"x\ty": 1000},
		strings.Repeat("l", 255) + " 1":  {strings.Repeat("l", 255): 1},
	} {
		if got := shownLanes(weights); got != want {
			t.Errorf("lanes %v: got %q, want %q", weights, got, want)
		}
	}
}

func TestTheTightestOfAllLimitsIsTheOneToReach(t *testing.T) {
	for _, c := range []struct {
		perSecond float64
		quotas    []string
		want      float64
	}{
		{0, nil, 0}, {10, nil, 10}, {0, []string{"36000/1h"}, 10}, {5, []string{"36000/1h"}, 5}, {20, []string{"36000/1h", "90/1m"}, 1.5},
		{5, []string{"nonsense"}, 5},
	} {
		if got := allowed(jobs.QueueStatus{MaxJobsPerSecond: c.perSecond, Quotas: c.quotas}); got != c.want {
			t.Errorf("%v/s and %q: got %v/s allowed, want %v", c.perSecond, c.quotas, got, c.want)
		}
	}
}
