package jobs_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"queuekeeper/jobs"
)

// A round goes on above the lane that was served last, up to the one that was last when it began. Then comes the next.
func TestTheLanesBeyondTheEndOfARoundComeAfterItsBeginning(t *testing.T) {
	s := newSite(t)
	for _, each := range []int{1, 100} { // few due jobs tell their lanes; of many the lanes are visited
		for _, turns := range []jobs.Turns{{}, {Strict: true}, {One: true}} {
			turns.Last = "c"
			s.each(fmt.Sprintf("%d jobs of each lane, %+v", each, turns), func(s *site) {
				for _, lane := range []string{"a", "b", "c", "d", "e"} {
					s.lane(lane, each)
				}
				q := s.turner(turns)
				q.rates.Lane = "b"
				same(s.T, "lanes", strings.Join(q.take(2), ""), "ca")
				same(s.T, "last lane there is, some beyond the round", fmt.Sprint(q.last.Top, q.last.Beyond), "etrue")
				if each > 1 {
					return // there is enough for any claim before their turn
				}
				q.rates.Lane = "b"
				same(s.T, "the rest of the lanes", strings.Join(q.take(5), ""), "bde")
			})
		}
		s.each("no end is known", func(s *site) {
			for _, lane := range []string{"a", "b", "c"} {
				s.lane(lane, each)
			}
			q := s.turner(jobs.Turns{})
			q.rates.Lane = "b"
			same(s.T, "lanes", strings.Join(q.take(3), ""), "cab")
			same(s.T, "last lane there is, some beyond the round", fmt.Sprint(q.last.Top, q.last.Beyond), "cfalse")
		})
	}
}

// What waits below and beyond is not named: it must not be claimed.
func TestANarrowClaimLooksAtNoLaneBelowNorBeyond(t *testing.T) {
	s := newSite(t)
	for _, each := range []int{1, 100} {
		s.each(fmt.Sprint(each, " jobs of each lane"), func(s *site) {
			for _, lane := range []string{"a", "b", "c", "d", "e", "f"} {
				s.lane(lane, each)
			}
			q := s.turner(jobs.Turns{One: true, Narrow: true, Last: "e", Waiting: []string{"c", "e"}})
			q.rates.Lane = "b"
			same(s.T, "lanes", strings.Join(q.take(6), ""), "d")
			same(s.T, "granted, some beyond", fmt.Sprint(q.last.Granted, q.last.Beyond), "1 true")
		})
	}
}

func TestASuspectIsNotDueWhileItsLaneIsPaused(t *testing.T) {
	s := newSite(t)
	s.suspect("a")
	a := s.acquire(bid("a", 1, 1))
	ask := jobs.Step{Claim: 1, Turns: &jobs.Turns{}, AskDue: true}
	if got := s.step(a, ask).SuspectDue; got != 0 {
		t.Errorf("suspect of a free lane: got due in %v, want now", got)
	}
	s.pause("a", time.Hour, "why")
	r := s.step(a, ask)
	if r.SuspectDue != -1 || r.SuspectLane != "" {
		t.Errorf("suspect of a paused lane: got due in %v, lane %q; want none", r.SuspectDue, r.SuspectLane)
	}
	near(t, "first lane that goes on", r.LaneDue, time.Hour)
	s.suspect("b")
	if r := s.step(a, ask); r.SuspectDue != 0 || r.SuspectLane != "b" {
		t.Errorf("the first of a free lane: got due in %v, lane %q; want now, b", r.SuspectDue, r.SuspectLane)
	}
}

func TestAReasonOfAPauseIsCutInTheTables(t *testing.T) {
	s := newSite(t)
	a := s.acquire(bid("a", 1, 1))
	long := strings.Repeat("ä", 3000)
	s.step(a, jobs.Step{Pause: time.Hour, Why: long, Lanes: map[string]jobs.LanePause{"a": {For: time.Hour, Why: long}}})
	s.is("500 500", `select concat_ws(' ', char_length(q.pause_reason), char_length(l.pause_reason)) from queues q, lanes l`)
}

func TestAStepTellsWhichLanesArePausedIfItIsAsked(t *testing.T) {
	s := newSite(t)
	a := s.acquire(bid("a", 1, 1))
	s.pause("a", time.Hour, "")
	s.pause("b", 0, "")
	s.exec(`insert into lanes (queue, lane, paused_until) values ('q', 'over', now() - interval '1 s'), ('other', 'c', 'infinity')`)
	if got := s.step(a, jobs.Step{}).PausedLanes; got != nil {
		t.Errorf("not asked: got %v, want none", got)
	}
	for what, got := range map[string]map[string]time.Duration{
		"asked":             s.step(a, jobs.Step{AskPauses: true}).PausedLanes,
		"the next holder's": s.step(s.acquire(bid("a", 2, 1)), jobs.Step{AskPauses: true}).PausedLanes,
	} {
		same(t, what+": number of lanes", len(got), 2)
		near(t, what+": lane a", got["a"], time.Hour)
		near(t, what+": lane b, at most 100 days", got["b"], 100*24*time.Hour)
	}
}

// Those who waited for a retry hear of its end.
func TestCancelAndDeleteOfAPendingJobAreTold(t *testing.T) {
	s := newSite(t)
	s.retrying("a")
	s.retrying("a")
	s.exec(`insert into jobs (queue, name, state) values ('q', 'Do', 'dead')`)
	listener := s.worker()
	exec(t, listener, `listen jobs_q`)
	told := func() (payloads []string) {
		exec(t, s.look, `select pg_notify('jobs_q', 'end')`)
		for {
			n, err := listener.WaitForNotification(ctx)
			finish(t, err)
			if n.Payload == "end" {
				return payloads
			}
			payloads = append(payloads, n.Payload)
		}
	}
	_, err := jobs.Schema("").Cancel(ctx, s.look, 1)
	finish(t, err)
	same(t, "told of the cancel", told(), []string{"cancel"})
	_, err = jobs.Schema("").Delete(ctx, s.look, 2)
	finish(t, err)
	same(t, "told of the delete", told(), []string{"cancel"})
	_, err = jobs.Schema("").Delete(ctx, s.look, 3)
	finish(t, err)
	same(t, "told of the delete of a dead one", told(), []string(nil))
}
