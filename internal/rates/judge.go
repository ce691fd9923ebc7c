package main

import (
	"fmt"
	"slices"
	"time"
)

// verdict is what the log of one trial says.
type verdict struct {
	trial
	starts  int
	faults  int       // that happened
	means   []float64 // starts per second while a job was due; of a reload before and after it
	share   float64   // the smaller of the means by its limit; 0: not known
	most    int       // starts in the fullest of the shortest windows
	allowed int
	over    int // windows, at the start
	early   int // starts before their turn after a reload, which begins with an empty bucket
	way     time.Duration
	refused int // calls

	receiverMost, receiverOver int
}

// reloaded is when other limits came: no start before began, and each from seen on, is under the other.
type reloaded struct{ began, seen time.Time }

// judge looks at every window. due are the times at which the jobs of the trial were due.
func judge(t trial, l log, due []time.Time, at reloaded) verdict {
	starts := times(l.starts)
	v := verdict{trial: t, starts: len(starts), way: l.way(99)}
	for _, a := range l.answers {
		if a.status != 200 {
			v.refused++
		}
	}
	if t.then == (limit{}) {
		v.add(t.limit, busy(starts, due))
	} else {
		v.addReload(t, starts, due, at)
	}
	whole := t.limit.or(t.then)
	v.allowed = whole.allowed(whole.shortest())
	v.most, v.receiverMost = whole.most(starts), whole.most(times(l.arrivals))
	v.over += whole.over(starts)
	v.receiverOver += whole.over(times(l.arrivals))
	return v
}

// add takes in the starts under one limit: how fast they came.
func (v *verdict) add(l limit, stretches [][]time.Time) {
	mean := mean(l, stretches)
	v.means = append(v.means, mean)
	if share := mean / l.perSecond; v.share == 0 || share < v.share {
		v.share = share
	}
}

// addReload looks at each side of the reload by its own limit. What is across it is judged by the larger one.
func (v *verdict) addReload(t trial, starts, due []time.Time, at reloaded) {
	before, rest := split(starts, at.began)
	between, after := split(rest, at.seen)
	v.over += t.limit.over(before) + t.then.over(after)
	v.add(t.limit, busy(before, due))
	then := t.then
	if then.quota == 0 {
		then.burst = 1 // the bucket begins empty
	}
	done := len(before) + len(between)
	v.add(then, busy(after, due[min(done, len(due)):]))
	if t.gaps && len(between) == 0 {
		v.early = t.then.early(after, at.began)
	}
}

func split(times []time.Time, at time.Time) (before, after []time.Time) {
	i := slices.IndexFunc(times, func(t time.Time) bool { return !t.Before(at) })
	if i < 0 {
		return times, nil
	}
	return times[:i], times[i:]
}

// busy splits starts into stretches in which a job was due all the time. Both are in order.
func busy(starts, due []time.Time) (stretches [][]time.Time) {
	from := 0
	for i := 1; i <= len(starts); i++ {
		if i == len(starts) || i >= len(due) || due[i].After(starts[i-1]) {
			stretches = append(stretches, starts[from:i])
			from = i
		}
	}
	return stretches
}

// mean is in starts per second. The burst at the beginning of a stretch took no time and does not count; a quota lets
// all of its starts through at once, so what counts is how long it takes until there are as many more.
func mean(l limit, stretches [][]time.Time) float64 {
	var n int
	var took time.Duration
	for _, s := range stretches {
		if l.quota > 0 {
			for i := l.quota; i < len(s); i++ {
				n, took = n+l.quota, took+s[i].Sub(s[i-l.quota])
			}
		} else if len(s) > l.burst {
			n, took = n+len(s)-l.burst, took+s[len(s)-1].Sub(s[0])
		}
	}
	if took == 0 {
		return 0
	}
	return float64(n) / took.Seconds()
}

// aim is the share of the limit that should be reached where nothing keeps a job from being started.
func (l limit) aim() float64 {
	if l.quota > 0 {
		return 0.975
	}
	return 0.985
}

// wrong is what was not as promised. How things arrive is no promise, nor is the mean.
func (v verdict) wrong() (wrong []string) {
	say := func(format string, args ...any) {
		wrong = append(wrong, fmt.Sprintf("queue %s: ", v.queue())+fmt.Sprintf(format, args...))
	}
	if v.starts == 0 {
		say("nothing started")
	}
	if v.over > 0 {
		say("windows with more starts than allowed: got %d, want none", v.over)
	}
	if v.early > 0 {
		say("starts before their turn after the reload: got %d, want none", v.early)
	}
	if v.behindNginx && v.refused > 0 {
		say("calls that nginx refused: got %d, want none", v.refused)
	}
	return wrong
}
