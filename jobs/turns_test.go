package jobs_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"queuekeeper/jobs"
)

// lane enqueues due jobs in a lane.
func (s *site) lane(lane string, count int) {
	s.Helper()
	s.exec(`insert into jobs (queue, name, lane, run_at) select 'q', 'Do', $1, now() - interval '1 h' from generate_series(1, $2)`, lane, count)
}

// turner claims in turn, as a child does: from where the last claim left the lanes.
type turner struct {
	*site
	a     *jobs.Acquired
	turns jobs.Turns
	rates jobs.Rates
	last  jobs.Reply
}

func (s *site) turner(turns jobs.Turns) *turner {
	return &turner{site: s, a: s.acquire(bid("a", 1, 1)), turns: turns}
}

// take claims up to n jobs and returns their lanes.
func (t *turner) take(n int) (lanes []string) {
	t.Helper()
	t.last = t.step(t.a, jobs.Step{Rates: t.rates, Claim: n, Turns: &t.turns})
	t.rates.Lane, t.rates.LaneLeft = t.last.Lane, t.last.LaneLeft
	for _, c := range t.last.Claimed {
		lanes = append(lanes, c.Lane)
	}
	return lanes
}

func TestLanesTakeTurns(t *testing.T) {
	s := newSite(t)
	s.each("one flooded lane and one job", func(s *site) {
		s.lane("flood", 1000)
		q := s.turner(jobs.Turns{})
		same(s.T, "lanes", q.take(3), []string{"flood", "flood", "flood"})
		s.lane("one", 1)
		same(s.T, "lanes", q.take(1), []string{"one"})
		same(s.T, "lanes", q.take(2), []string{"flood", "flood"})
	})
	s.each("oldest first within a lane", func(s *site) {
		s.lane("b", 3)
		s.lane("a", 3)
		s.exec(`update jobs set run_at = now() - interval '2 h' where id in (3, 6)`)
		q := s.turner(jobs.Turns{})
		q.take(4)
		same(s.T, "claimed", ids(q.last.Claimed), []int64{6, 3, 4, 1})
	})
	s.each("weights", func(s *site) {
		for _, lane := range []string{"a", "b", "c"} {
			s.lane(lane, 100)
		}
		q := s.turner(jobs.Turns{Weights: map[string]int{"a": 5, "b": 3, "c": 2}})
		var got []string
		for range 20 {
			got = append(got, q.take(1)...)
		}
		same(s.T, "lanes", strings.Join(got, ""), "aaaaabbbccaaaaabbbcc")
		same(s.T, "lanes", strings.Join(q.take(7), ""), "aaaaabb")
		same(s.T, "lanes", strings.Join(q.take(25), ""), "bccaaaaabbbccaaaaabbbccaa")
		same(s.T, "left", q.last.LaneLeft, 3)
	})
	s.each("waiting and paused lanes are passed over", func(s *site) {
		for _, lane := range []string{"a", "b", "c", "d"} {
			s.lane(lane, 10)
		}
		s.exec(`insert into lanes (queue, lane, paused_until) values ('q', 'b', now() + interval '1 h'), ('q', 'd', now() - interval '1 h')`)
		q := s.turner(jobs.Turns{Waiting: []string{"c"}})
		same(s.T, "lanes", q.take(4), []string{"a", "d", "a", "d"})
		q.turns.One = true
		same(s.T, "lanes, one of each", q.take(4), []string{"a", "d"})
	})
	s.each("a pause of the queue", func(s *site) {
		s.lane("a", 10)
		q := s.turner(jobs.Turns{})
		s.exec(`update queues set paused_until = 'infinity'`)
		same(s.T, "lanes", q.take(4), []string(nil))
	})
	s.each("later jobs are not due", func(s *site) {
		s.lane("a", 100)
		s.exec(`update jobs set run_at = 'infinity'`)
		s.lane("b", 100)
		q := s.turner(jobs.Turns{})
		same(s.T, "lanes", q.take(2), []string{"b", "b"})
		same(s.T, "others", q.last.Others, true)
	})
	s.each("one lane", func(s *site) {
		s.lane("a", 100)
		q := s.turner(jobs.Turns{})
		q.take(2)
		same(s.T, "others", q.last.Others, false)
	})
}

// The lanes of the oldest jobs are served although most lanes, and those that are next, have jobs for later only.
func TestManyLanesWithLaterJobsDoNotKeepTheDueOnesWaiting(t *testing.T) {
	s := newSite(t)
	s.exec(`insert into jobs (queue, name, lane, run_at) select 'q', 'Do', 'l' || i, now() + interval '1 h' from generate_series(1, 3000) i`)
	s.lane("zz", 300)
	q := s.turner(jobs.Turns{})
	for range 5 {
		same(t, "lanes", q.take(2), []string{"zz", "zz"})
		if !q.last.Cut {
			t.Errorf("cut: got false, want true: not all lanes were seen")
		}
	}
	s.lane("l1000", 1)
	s.exec(`update jobs set run_at = now() - interval '1 minute' where lane = 'l1000'`)
	if got := q.take(2); !slices.Contains(got, "l1000") {
		t.Errorf("lanes: got %v, want the one that has the newest due job among them", got)
	}

	s.lane("l2500", 1) // neither the oldest nor the newest
	s.exec(`update jobs set run_at = now() - interval '2 h' where lane = 'zz' and id % 2 = 0 and state = 'pending'`)
	s.exec(`update jobs set run_at = now() where lane = 'zz' and id % 2 = 1 and state = 'pending'`)
	claims := 0
	for !slices.Contains(q.take(2), "l2500") {
		if claims++; claims > 3001/52+1 {
			t.Fatalf("a due job was not found in %d claims that see 52 of 3001 lanes each", claims)
		}
	}
}

// round is the same turns, taken one by one.
func round(lanes map[string]int, weights map[string]int, rates *jobs.Rates, n int) (granted []string) {
	names := slices.Sorted(func(yield func(string) bool) {
		for lane, jobs := range lanes {
			if jobs > 0 && !yield(lane) {
				return
			}
		}
	})
	if len(names) == 0 {
		return nil
	}
	at, left := 0, 0
	for at < len(names) && (names[at] < rates.Lane || names[at] == rates.Lane && rates.LaneLeft == 0) {
		at++
	}
	at %= len(names)
	weight := func(lane string) int { return max(1, weights[lane]) }
	left = weight(names[at])
	if names[at] == rates.Lane && rates.LaneLeft > 0 {
		left = min(left, rates.LaneLeft)
	}
	for range n {
		if left == 0 {
			at = (at + 1) % len(names)
			left = weight(names[at])
		}
		granted = append(granted, names[at])
		left--
		rates.Lane, rates.LaneLeft = names[at], left
	}
	return granted
}

func TestTurnsAreThoseTakenOneByOne(t *testing.T) {
	s := newSite(t)
	a := s.acquire(bid("a", 1, 1))
	rapid.Check(t, func(rt *rapid.T) {
		s.exec(`truncate jobs restart identity`)
		lanes, weights := map[string]int{}, map[string]int{}
		for i := range rapid.IntRange(1, 6).Draw(rt, "lanes") {
			lane := string(rune('a' + i))
			lanes[lane] = rapid.IntRange(0, 40).Draw(rt, "jobs")
			weights[lane] = rapid.IntRange(0, 4).Draw(rt, "weight")
		}
		s.exec(`insert into jobs (queue, name, lane, run_at)
			select 'q', 'Do', l.key, now() - interval '1 h' from jsonb_each_text($1::jsonb) l cross join generate_series(1, l.value::int)`, lanes)
		q := &turner{site: s, a: a, turns: jobs.Turns{Weights: weights}}
		var rates jobs.Rates
		for range 8 {
			n := rapid.IntRange(1, 25).Draw(rt, "n")
			var want []string
			for _, lane := range round(lanes, weights, &rates, n) {
				if lanes[lane] > 0 {
					lanes[lane]--
					want = append(want, lane)
				}
			}
			if got := q.take(n); fmt.Sprint(got) != fmt.Sprint(want) || len(want) > 0 && q.rates != rates {
				rt.Fatalf("lanes of %d jobs: got %v and then %+v, want %v and %+v", n, got, q.rates, want, rates)
			}
		}
	})
}

func TestNothingOvertakesAFailedJobWhereOrderIsStrict(t *testing.T) {
	s := newSite(t)
	s.lane("a", 3)
	s.lane("b", 3)
	q := s.turner(jobs.Turns{Strict: true})
	same(t, "lanes", q.take(6), []string{"a", "b"})
	first := q.last.Claimed
	same(t, "lanes while both run", q.take(6), []string(nil))
	s.end(q.a, jobs.Ended{Ref: first[0].Ref(), Kind: jobs.KindFail, Delay: 1e12})
	s.end(q.a, jobs.Ended{Ref: first[1].Ref(), Kind: jobs.KindDone})
	same(t, "lanes while one waits for its retry", q.take(6), []string{"b"})
	s.end(q.a, jobs.Ended{Ref: q.last.Claimed[0].Ref(), Kind: jobs.KindExcused})
	s.exec(`update jobs set run_at = now() where id = $1`, first[0].ID)
	q.take(6)
	same(t, "claimed once it is due", ids(q.last.Claimed), []int64{first[0].ID, 5})
	s.end(q.a, jobs.Ended{Ref: q.last.Claimed[0].Ref(), Kind: jobs.KindDead})
	q.take(6)
	same(t, "claimed once it is dead", ids(q.last.Claimed), []int64{2})
}
