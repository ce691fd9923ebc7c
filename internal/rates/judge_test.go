package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// at are times in milliseconds of the boot clock.
func at(ms ...int) (all []time.Time) {
	for _, m := range ms {
		all = append(all, onBoot(time.Duration(m)*time.Millisecond))
	}
	return all
}

// every are n times, the first at from, in milliseconds.
func every(interval, from, n int) (all []int) {
	for i := range n {
		all = append(all, from+i*interval)
	}
	return all
}

// called is the log of jobs that started then and whose calls took 1 ms.
func called(ms ...int) (l log) {
	for i, t := range at(ms...) {
		l.starts = append(l.starts, event{id: int64(i), at: t, lane: "default"})
		l.arrivals = append(l.arrivals, event{id: int64(i), at: t.Add(time.Millisecond), status: 200})
		l.answers = append(l.answers, event{id: int64(i), at: t.Add(2 * time.Millisecond), status: 200})
	}
	return l
}

func TestJudgeAcceptsASoundLogAndFindsOneStartTooMany(t *testing.T) {
	reload := reloaded{began: at(10_000)[0], seen: at(10_100)[0]}
	for name, c := range map[string]struct {
		trial  trial
		starts []int
		want   string // "": nothing is wrong
	}{
		"at the limit":            {trial{limit: pace(10, 1)}, every(101, 0, 200), ""},
		"one too many":            {trial{limit: pace(10, 1)}, append(every(101, 0, 200), 5000), "queue -10-b1-c0: windows"},
		"a burst after idling":    {trial{limit: pace(10, 5)}, append(every(1, 0, 5), every(101, 101, 9)...), ""},
		"a burst without":         {trial{limit: pace(10, 1)}, append(every(1, 0, 5), every(101, 101, 9)...), "windows"},
		"bursts again and again":  {trial{limit: pace(10, 5)}, bursts(14, 1000, 5), "windows"},
		"slow, and too soon":      {trial{limit: pace(0.5, 1)}, []int{0, 2010, 4000}, "windows"},
		"a full quota":            {trial{limit: quota(100)}, bursts(100, 10_001, 5), ""},
		"a quota at a fixed time": {trial{limit: quota(100)}, append(every(1, 9_500, 100), every(1, 10_000, 100)...), "windows"},
		"nothing":                 {trial{limit: pace(10, 1)}, nil, "nothing started"},

		"a reload": {
			trial{limit: pace(10, 1), then: pace(50, 1)}, append(every(101, 0, 100), every(21, 10_150, 100)...), "",
		},
		"the old limit after a reload": {
			trial{limit: pace(10, 1), then: pace(2, 1)}, every(101, 0, 200), "windows",
		},
		"the new limit before a reload": {
			trial{limit: pace(10, 1), then: pace(50, 1)}, every(21, 0, 800), "windows",
		},
		"more than both across a reload": {
			trial{limit: pace(10, 1), then: pace(9, 1)}, append(every(101, 0, 100), append(every(0, 10_010, 1), every(120, 10_110, 90)...)...), "windows",
		},
		"an empty bucket after a reload": {
			trial{limit: pace(10, 5), then: pace(2, 5), gaps: true}, append(every(101, 0, 50), every(505, 10_520, 20)...), "",
		},
		"what was saved before a reload": {
			trial{limit: pace(10, 5), then: pace(2, 5), gaps: true},
			append(every(101, 0, 50), append(every(1, 10_520, 4), every(505, 11_030, 20)...)...), "before their turn",
		},
	} {
		v := judge(c.trial, called(c.starts...), nil, reload)
		got := strings.Join(v.wrong(), "; ")
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// bursts are n starts at once, that many times.
func bursts(n, apart, times int) (all []int) {
	for i := range times {
		all = append(all, every(0, i*apart, n)...)
	}
	return all
}

func TestReceiverIsMeasuredAndNotJudged(t *testing.T) {
	l := called(every(101, 0, 100)...)
	l.arrivals[50].at = l.arrivals[51].at // late, and so with the next
	for i := range 6 {
		l.arrivals[40+i].at = l.arrivals[46].at
	}
	l.sort()
	v := judge(trial{limit: pace(10, 1)}, l, nil, reloaded{})
	if v.over != 0 || v.receiverOver == 0 || v.receiverMost <= v.allowed {
		t.Errorf("got %d windows over at the start, %d at the receiver, most %d of %d allowed; want none, some, more",
			v.over, v.receiverOver, v.receiverMost, v.allowed)
	}
	if wrong := v.wrong(); len(wrong) > 0 {
		t.Errorf("got %q, want nothing wrong", wrong)
	}
	if got, want := v.way, 506*time.Millisecond; got != want { // the second longest of a hundred
		t.Errorf("way, p99: got %v, want %v", got, want)
	}
}

func TestNginxMayRefuseNothing(t *testing.T) {
	for _, behind := range []bool{true, false} {
		l := called(every(101, 0, 100)...)
		l.answers[7].status = 503
		wrong := judge(trial{limit: pace(10, 1), behindNginx: behind}, l, nil, reloaded{}).wrong()
		if got := len(wrong) > 0; got != behind {
			t.Errorf("a refused call, behind nginx %t: got %q, want a fault: %t", behind, wrong, behind)
		}
	}
}

func TestMeanIsOfTheTimeInWhichAJobWasDue(t *testing.T) {
	waves := append(every(1, 0, 5), every(100, 100, 20)...)
	waves = append(waves, append(every(1, 9_000, 5), every(100, 9_100, 20)...)...)
	due := append(slices.Repeat(at(0), 25), slices.Repeat(at(9_000), 25)...)
	for name, c := range map[string]struct {
		limit  limit
		starts []int
		due    []time.Time
		want   float64
	}{
		"a backlog":           {pace(10, 1), every(100, 0, 50), slices.Repeat(at(0), 60), 10},
		"a slow backlog":      {pace(10, 1), every(125, 0, 50), slices.Repeat(at(0), 60), 8},
		"waves":               {pace(10, 5), waves, due, 10},
		"quotas":              {quota(100), bursts(100, 12_500, 4), slices.Repeat(at(0), 600), 8},
		"nothing but a burst": {pace(10, 5), every(1, 0, 5), slices.Repeat(at(0), 5), 0},
	} {
		got := mean(c.limit, busy(at(c.starts...), c.due))
		if fmt.Sprintf("%.2f", got) != fmt.Sprintf("%.2f", c.want) {
			t.Errorf("%s: got %.2f starts per second, want %.2f", name, got, c.want)
		}
	}
}
