package main

import (
	"reflect"
	"testing"
	"time"
)

func TestSeedAndNumberAreTheWholePlan(t *testing.T) {
	told := func(seed uint64, number int) (string, [][]job) {
		p := newPlan(seed, number)
		return p.story(), p.jobs
	}
	story, jobs := told(1, 1)
	if again, jobsAgain := told(1, 1); again != story || !reflect.DeepEqual(jobsAgain, jobs) {
		t.Errorf("the same round again: got\n%s\nwant\n%s", again, story)
	}
	for _, other := range [][2]int{{1, 2}, {2, 1}} {
		if got, _ := told(uint64(other[0]), other[1]); got == story {
			t.Errorf("round %d of seed %d: got that of round 1 of seed 1, want another", other[1], other[0])
		}
	}
}

// What chance may never choose is never tried.
func TestChanceChoosesEverything(t *testing.T) {
	chosen := map[string]bool{}
	for number := range 500 {
		p := newPlan(1, number)
		limits := 0
		for _, q := range p.queues {
			chosen[q.name] = true
			if q.perSecond > 0 || q.quota > 0 || q.perLane > 0 {
				limits++
			}
		}
		if limits == 0 {
			t.Errorf("round %d: got queues %s, want one with a limit", number, p.names())
		}
		for i, e := range p.events {
			chosen[e.kind.name] = true
			if e.at > window || i > 0 && e.at < p.events[i-1].at {
				t.Errorf("round %d: got event %d at %v, want them in order, within %v", number, i, e.at, window)
			}
		}
		chosen[p.way.name] = true
	}
	for _, q := range queues {
		if !chosen[q.name] {
			t.Errorf("queue %s: got never, want it chosen", q.name)
		}
	}
	for _, k := range kinds {
		if !chosen[k.name] {
			t.Errorf("%s: got never, want it chosen", k.name)
		}
	}
	for _, w := range waysOut {
		if !chosen[w.name] {
			t.Errorf("the way out %s: got never, want it chosen", w.name)
		}
	}
}

func TestWatchMeasuresUntilTheQueueIsAcquiredAnew(t *testing.T) {
	w := newWatch()
	w.look([]holding{{queue: "slow", epoch: 3, supervisor: "a", pid: 7}})
	w.loses("slow", "KILL")
	w.look([]holding{{queue: "slow", epoch: 3, supervisor: "a", pid: 7}})
	if len(w.worst) > 0 {
		t.Errorf("before anybody acquired it: got %v, want nothing measured", w.worst)
	}
	w.lost["slow"] = loss{to: "KILL", at: time.Now().Add(-time.Second), epoch: 3}
	w.look([]holding{{queue: "slow", epoch: 4, supervisor: "a", pid: 8}})
	if got := w.worst["KILL"]; got < time.Second || len(w.lost) > 0 {
		t.Errorf("after it was acquired: got %v and %v lost, want at least 1s and nothing", got, w.lost)
	}
	w.blind(true)
	if w.loses("slow", "KILL"); len(w.lost) > 0 {
		t.Errorf("while Postgres is away: got %v, want nothing measured", w.lost)
	}
}
