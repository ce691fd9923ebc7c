package ratelimit

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// lanesAndPaces are Lanes beside what they must be: a Pace of burst 1 for each lane.
type lanesAndPaces struct {
	limit  Limit
	now    time.Time
	lanes  *Lanes
	paces  map[string]*Pace
	latest time.Time // the bucket of some lane is empty then: the end of a pause, or what a reload adds
}

var laneNames = []string{"a", "b", "", "d"}

func newLanesAndPaces(limit Limit, emptyFor time.Duration) *lanesAndPaces {
	l := &lanesAndPaces{limit, origin, NewLanes(limit, origin, emptyFor, nil), map[string]*Pace{}, time.Time{}}
	for _, lane := range laneNames {
		l.paces[lane] = NewPace(limit, origin, emptyFor)
	}
	return l
}

func (l *lanesAndPaces) start(lane string, late time.Duration) {
	l.now = l.lanes.Next(l.now, lane).Add(late)
	l.lanes.Start(lane, l.now)
	l.paces[lane].Start(l.now)
}

func (l *lanesAndPaces) setLimit(limit Limit) {
	l.latest = latest(l.latest, l.now.Add(l.lanes.forgiven))
	l.limit = limit
	l.lanes.SetLimit(limit, l.now)
	for _, pace := range l.paces {
		pace.SetLimit(limit, l.now)
	}
}

// restore is a clean release and what comes after. A time ahead is no part of the state: it is over by then.
func (l *lanesAndPaces) restore(away time.Duration) {
	l.now = latest(l.now, l.latest)
	all, turns := l.lanes.EmptyFor(l.now)
	l.now = l.now.Add(away)
	for lane := range turns {
		turns[lane] += away
	}
	l.lanes = NewLanes(l.limit, l.now, all+away, turns)
}

func (l *lanesAndPaces) fault(ahead time.Duration) string {
	now := l.now.Add(ahead)
	for _, lane := range laneNames {
		if got, want := l.lanes.Next(now, lane), l.paces[lane].Next(now, 1); !got.Equal(want) {
			return fmt.Sprintf("next turn of lane %q, %s from now: got in %s, want in %s", lane, ahead, got.Sub(now), want.Sub(now))
		}
	}
	return ""
}

func drawLaneLimit(t *rapid.T) Limit {
	limit := drawLimit(t, "lane", drawHeadroom(t))
	limit.Burst = 1
	return limit
}

func TestEachLaneIsAPaceOfItsOwn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := drawLaneLimit(t)
		l := newLanesAndPaces(limit, drawTime(t, limit.rule().interval, "empty for"))
		lane := rapid.SampledFrom(laneNames)
		span := func(t *rapid.T, name string) time.Duration { return drawTime(t, l.lanes.interval, name) }
		t.Repeat(map[string]func(*rapid.T){
			"start": func(t *rapid.T) { l.start(lane.Draw(t, "lane"), span(t, "late")) },
			"idle":  func(t *rapid.T) { l.now = l.now.Add(span(t, "idle")) },
			"look":  func(t *rapid.T) { l.lanes.Waiting(l.now, l.now.Add(span(t, "before"))) },
			"pause": func(t *rapid.T) {
				lane, until := lane.Draw(t, "lane"), l.now.Add(span(t, "pause"))
				l.latest = latest(l.latest, until)
				l.lanes.Pause(lane, until)
				l.paces[lane].Empty(until)
			},
			"release and acquire": func(t *rapid.T) { l.restore(span(t, "away")) },
			"set the limit": func(t *rapid.T) {
				limit := rapid.SampledFrom([]Limit{l.limit, drawLaneLimit(t)}).Draw(t, "limit")
				if rapid.Bool().Draw(t, "none for a moment") {
					l.setLimit(Limit{Burst: 1})
				}
				l.setLimit(limit)
			},
			"": func(t *rapid.T) {
				if fault := l.fault(span(t, "ahead")); fault != "" {
					t.Fatalf("%+v: %s", l.limit, fault)
				}
			},
		})
	})
}

func TestWaitingNamesExactlyTheLanesWithoutATurnBefore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := drawLaneLimit(t)
		l := newLanesAndPaces(limit, longAgo)
		for range rapid.IntRange(0, 9).Draw(t, "starts") {
			l.now = l.now.Add(drawTime(t, limit.rule().interval, "idle"))
			lane := rapid.SampledFrom(laneNames).Draw(t, "lane")
			if rapid.IntRange(0, 3).Draw(t, "pause") == 0 {
				l.lanes.Pause(lane, l.now.Add(drawTime(t, limit.rule().interval, "pause")))
			} else {
				l.now = l.now.Add(drawTime(t, limit.rule().interval, "late"))
				l.lanes.Start(lane, latest(l.now, l.lanes.Next(l.now, lane)))
			}
		}
		before := l.now.Add(drawTime(t, limit.rule().interval, "before"))
		var want []string
		var wantFirst time.Time
		for _, lane := range laneNames {
			if next := l.lanes.Next(l.now, lane); next.After(before) {
				want = append(want, lane)
				if wantFirst.IsZero() || next.Before(wantFirst) {
					wantFirst = next
				}
			}
		}
		got, first := l.lanes.Waiting(l.now, before)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) || !first.Equal(wantFirst) {
			t.Fatalf("waiting: got %q, the first in %s; want %q, in %s", got, first.Sub(l.now), want, wantFirst.Sub(l.now))
		}
	})
}

func TestLanesThatAreFullAgainAreForgotten(t *testing.T) {
	limit := Limit{PerSecond: 1, Headroom: 0.01}
	l := NewLanes(limit, origin, longAgo, nil)
	now := origin
	for i := range 2000 {
		l.Start(fmt.Sprint(i), now)
		now = now.Add(5 * time.Millisecond)
		l.Waiting(now, now)
	}
	if got := len(l.empty); got < 200 || got > 205 {
		t.Errorf("lanes known, of 200 started in the last second: got %d, want 200 and few more", got)
	}
	now = now.Add(2 * time.Second)
	if lanes, first := l.Waiting(now, now); len(l.empty) > 0 || len(lanes) > 0 || !first.IsZero() {
		t.Errorf("two seconds later: got %d lanes known, %d waiting, want none", len(l.empty), len(lanes))
	}
}

func TestLaneThatWaitsHoldsUpNoOther(t *testing.T) {
	l := NewLanes(Limit{PerSecond: 0.5}, origin, longAgo, nil)
	for i := range 50 {
		lane := fmt.Sprint(i)
		if got := l.Next(origin, lane); !got.Equal(origin) {
			t.Errorf("lane %s, beside %d that wait: next turn: got in %s, want now", lane, i, got.Sub(origin))
		}
		l.Start(lane, origin)
		if got, want := l.Next(origin, lane), origin.Add(2*time.Second); !got.Equal(want) {
			t.Errorf("lane %s after its start: next turn: got in %s, want in 2s", lane, got.Sub(origin))
		}
	}
}

func TestAfterATakeOverEveryLaneWaitsAnInterval(t *testing.T) {
	l := NewLanes(Limit{PerSecond: 0.5}, origin, 0, nil)
	want := origin.Add(2 * time.Second)
	for _, lane := range laneNames {
		if got := l.Next(origin, lane); !got.Equal(want) {
			t.Errorf("lane %q: next turn: got in %s, want in 2s", lane, got.Sub(origin))
		}
	}
	if got := l.AllFrom(); !got.Equal(want) {
		t.Errorf("first turn of any lane: got in %s, want in 2s", got.Sub(origin))
	}
}

func TestPauseOfALaneEndsWithAnEmptyBucketOrWhenItIsLifted(t *testing.T) {
	limit := Limit{PerSecond: 0.5}
	l := NewLanes(limit, origin, longAgo, nil)
	l.Pause("a", origin.Add(time.Minute))
	l.Pause("a", origin.Add(time.Second)) // less is no pause
	l.Start("b", origin)
	if got, want := l.Next(origin, "a"), origin.Add(62*time.Second); !got.Equal(want) {
		t.Errorf("paused lane: next turn: got in %s, want an interval after the end, 1m2s", got.Sub(origin))
	}
	if got := l.Next(origin, "c"); !got.Equal(origin) {
		t.Errorf("another lane: next turn: got in %s, want now", got.Sub(origin))
	}
	now := origin.Add(time.Second)
	l.Lift(now)
	for lane, want := range map[string]time.Duration{"a": 2 * time.Second, "b": time.Second, "c": 0} {
		if got := l.Next(now, lane).Sub(now); got != want {
			t.Errorf("lane %s after the pauses were lifted: next turn: got in %s, want in %s", lane, got, want)
		}
	}
}

func TestLanesWithoutALimitNeverWait(t *testing.T) {
	l := NewLanes(Limit{Headroom: 0.01}, origin, 0, map[string]time.Duration{"a": -time.Hour})
	l.Start("a", origin)
	l.Pause("b", origin.Add(time.Hour))
	for _, lane := range laneNames {
		if got := l.Next(origin, lane); !got.Equal(origin) {
			t.Errorf("lane %q: next turn: got in %s, want now", lane, got.Sub(origin))
		}
	}
	if lanes, _ := l.Waiting(origin, origin); len(lanes) > 0 || !l.None() {
		t.Errorf("got lanes %q waiting, None() %t; want none and true", lanes, l.None())
	}
}
