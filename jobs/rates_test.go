package jobs_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"queuekeeper/jobs"
)

const oddText = "it's \"odd\" \\ {a,b} NULL, $1 %s\n\t\x01 ä 🐘"

func TestAStepStoresWhatIsKnownOfTheStarts(t *testing.T) {
	s := newSite(t)
	s.insert(3)
	a := s.acquire(bid("a", 1, 1))
	s.step(a, jobs.Step{Claim: 1})
	rates := jobs.Rates{EmptyFor: time.Minute, Quotas: "60:1:2,3", Waiting: 2, Lane: oddText, LaneLeft: 3}
	s.step(a, jobs.Step{Rates: rates, Claim: 2})
	s.is("60:1:2,3 2 3 "+oddText, `select concat_ws(' ', quotas, waiting, lane_left, lane) from queues`)
	s.is("2,3", `select string_agg(id::text, ',' order by id) from jobs, queues where locked_at = settled_at`)
	s.is("00:01:00", `select settled_at - empty_at from queues`)

	finish(t, a.Release(ctx, jobs.Step{Rates: rates}, jobs.LaneRates{}))
	s.exec(`update queues set settled_at = settled_at - interval '1 h', empty_at = empty_at - interval '1 h'`)
	b := s.acquire(bid("b", 1, 1))
	near(t, "settled", b.Settled, time.Hour)
	near(t, "empty for", b.EmptyFor, time.Hour+time.Minute)
	b.EmptyFor = rates.EmptyFor
	same(t, "found", b.Rates, rates)
}

// Two are counted in quotas when the last Step is sent, one has been claimed before it and waits, two are claimed by it.
func TestATakeOverChargesWhatMayHaveStartedSinceTheLastStep(t *testing.T) {
	s := newSite(t)
	for _, c := range []struct {
		name string
		then func(s *site, a *jobs.Acquired) *jobs.Acquired // how it comes to the next holder
		want int
	}{
		{"by the next child", func(s *site, _ *jobs.Acquired) *jobs.Acquired { return s.acquire(bid("a", 2, 1)) }, 3},
		{"by another", func(s *site, _ *jobs.Acquired) *jobs.Acquired { s.expire(); return s.acquire(bid("b", 1, 1)) }, 3},
		{"by one who follows others that died before their first Step", func(s *site, _ *jobs.Acquired) *jobs.Acquired {
			s.acquire(bid("a", 2, 1))
			s.acquire(bid("a", 3, 1))
			s.expire()
			return s.acquire(bid("b", 1, 1))
		}, 3},
		{"by its own next connection", func(s *site, a *jobs.Acquired) *jobs.Acquired {
			b := bid("a", 1, 2)
			b.Epoch, b.Held = a.Epoch(), []jobs.Ref{{ID: 1, Attempt: 1}, {ID: 4, Attempt: 1}, {ID: 5, Attempt: 1}}
			return s.acquire(b)
		}, 3},
		{"through a sweep", func(s *site, _ *jobs.Acquired) *jobs.Acquired {
			s.expire()
			s.sweeps(s.orphan(), 1, 2, 3, 4, 5)
			return s.acquire(bid("b", 1, 1))
		}, 3},
		{"through two sweeps", func(s *site, _ *jobs.Acquired) *jobs.Acquired {
			s.expire()
			s.sweeps(s.orphan(), 1, 2, 3, 4, 5)
			s.exec(`insert into jobs (queue, name, state, epoch) values ('q', 'Do', 'running', 1)`)
			s.sweeps(s.orphan(), 7)
			return s.acquire(bid("b", 1, 1))
		}, 3},
		{"after a renewal alone", func(s *site, a *jobs.Acquired) *jobs.Acquired {
			s.step(a, jobs.Step{Rates: jobs.Rates{Quotas: "here", Waiting: 2}})
			return s.acquire(bid("a", 2, 1))
		}, 2},
		{"after a release", func(s *site, a *jobs.Acquired) *jobs.Acquired {
			finish(s.T, a.Release(ctx, jobs.Step{Rates: jobs.Rates{Quotas: "here"}}, jobs.LaneRates{}))
			return s.acquire(bid("b", 1, 1))
		}, 0},
		{"after a release, by one who follows another that died", func(s *site, a *jobs.Acquired) *jobs.Acquired {
			finish(s.T, a.Release(ctx, jobs.Step{Rates: jobs.Rates{Quotas: "here"}}, jobs.LaneRates{}))
			s.acquire(bid("b", 1, 1))
			return s.acquire(bid("b", 2, 1))
		}, 0},
	} {
		s.each(c.name, func(s *site) {
			s.insert(6)
			a := s.acquire(bid("a", 1, 1))
			s.claim(a, 3)
			s.step(a, jobs.Step{Rates: jobs.Rates{Quotas: "here", Waiting: 1}, Claim: 2})
			next := c.then(s, a)
			if next.Waiting != c.want || next.Quotas != "here" {
				s.Errorf("starts that may have been: got %d beside quotas %q, want %d beside %q", next.Waiting, next.Quotas, c.want, "here")
			}
		})
	}
}

// A queue of which somebody has written nonsense is served all the same.
func TestOddStateOfTheRatesStopsNoAcquire(t *testing.T) {
	s := newSite(t)
	s.exec(`insert into queues (queue, waiting, settled_at, empty_at, lanes_empty_at, lanes_paused_until)
		values ('q', -2147483648, 'infinity', 'infinity', 'infinity', 'infinity')`)
	a := s.acquire(bid("a", 1, 1))
	if a.Waiting != 0 || a.Settled != 0 || a.EmptyFor != 0 || a.Lanes.EmptyFor != 0 {
		t.Errorf("found %+v, lanes empty for %v; want nothing waiting, and all of now", a.Rates, a.Lanes.EmptyFor)
	}
	s.exec(`update queues set waiting = 2147483647, settled_at = '-infinity', lanes_empty_at = '-infinity', supervisor = null, n = null, c = null`)
	s.exec(`insert into lanes (queue, lane, empty_at) values ('q', 'a', 'infinity')`)
	if b := s.acquire(bid("b", 1, 1)); b.Waiting != 1000 || b.Settled != 100*24*time.Hour || b.Lanes.Turns["a"] != 0 {
		t.Errorf("found %+v, settled for %v, turns %v; want 1000 waiting, 100 days and a turn of now", b.Rates, b.Settled, b.Lanes.Turns)
	}
}

func TestBucketsOfLanesAreEmptyAfterADeathAndKeptByARelease(t *testing.T) {
	s := newSite(t)
	a := s.acquire(bid("a", 1, 1))
	if a.Lanes.EmptyFor < 24*time.Hour {
		t.Errorf("empty for %v in a new queue, want for ever", a.Lanes.EmptyFor)
	}
	finish(t, a.Release(ctx, jobs.Step{}, jobs.LaneRates{EmptyFor: time.Hour}))
	b := s.acquire(bid("b", 1, 1))
	near(t, "empty for, after a release", b.Lanes.EmptyFor, time.Hour)
	s.expire()
	s.exec(`insert into jobs (queue, name, state, epoch) values ('q', 'Do', 'running', 2)`)
	s.exec(`update queues set lanes_empty_at = now() - interval '1 h'`)
	s.sweeps(s.orphan(), 1)
	s.is("true", `select lanes_empty_at > now() - interval '1 min' from queues`)
	s.exec(`update queues set lanes_empty_at = now() - interval '1 h'`)
	near(t, "empty for, after a sweep of a free queue", s.acquire(bid("c", 1, 1)).Lanes.EmptyFor, time.Hour)
	if d := s.acquire(bid("c", 2, 1)); d.Lanes.EmptyFor > time.Second {
		t.Errorf("empty for %v after a death, want 0", d.Lanes.EmptyFor)
	}
}

func TestTurnsOfLanesSurviveAReleaseASweepAndAnotherAcquire(t *testing.T) {
	s := newSite(t)
	a := s.acquire(bid("a", 1, 1))
	turns := map[string]time.Duration{"a": time.Minute, oddText: 2 * time.Minute, "later": -time.Hour, "old": 3 * time.Hour}
	finish(t, a.Release(ctx, jobs.Step{}, jobs.LaneRates{EmptyFor: time.Hour, Turns: turns}))
	s.exec(`insert into lanes (queue, lane, empty_at) values ('other', 'b', now())`)
	found := func(name string, a *jobs.Acquired) {
		t.Helper()
		same(t, name+": lanes", slices.Sorted(maps.Keys(a.Lanes.Turns)), []string{"a", oddText, "later"})
		near(t, name+": turn of a", a.Lanes.Turns["a"], time.Minute)
		near(t, name+": turn of the odd one", a.Lanes.Turns[oddText], 2*time.Minute)
		if got := a.Lanes.Turns["later"]; got != 0 {
			t.Errorf("%s: turn that is still to come was %v ago, want 0", name, got)
		}
	}
	b := s.acquire(bid("b", 1, 1))
	found("after a release", b)
	if _, err := b.Sweep(ctx, nil, atOnce); err != nil {
		t.Fatal(err)
	}
	s.is("3", `select count(*) from lanes where queue = 'q'`) // it has forgotten the old one
	found("after a sweep and a death", s.acquire(bid("b", 2, 1)))
	s.expire()
	s.exec(`insert into jobs (queue, name, state, epoch) values ('q', 'Do', 'running', 3)`)
	s.sweeps(s.orphan(), 1)
	c := s.acquire(bid("c", 1, 1))
	found("after the sweep of a queue nobody serves", c)
	finish(t, c.Release(ctx, jobs.Step{}, jobs.LaneRates{Turns: map[string]time.Duration{"a": time.Second}}))
	if got := s.acquire(bid("d", 1, 1)).Lanes.Turns["a"]; got > 30*time.Second {
		t.Errorf("turn of a after another release = %v, want the new one, 1s", got)
	}
}

// inParts prints what was found: so many starts so long ago, to the second, the latest first.
func inParts(all []jobs.Started) (texts []string) {
	slices.SortFunc(all, func(a, b jobs.Started) int { return int(a.Ago - b.Ago) })
	for _, p := range all {
		texts = append(texts, fmt.Sprintf("%d/%v", p.Starts, p.Ago.Truncate(time.Second)))
	}
	return texts
}

func TestStartedCountsTheLastStartOfEachJobInParts(t *testing.T) {
	s := newSite(t)
	a := s.acquire(bid("a", 1, 1))
	s.exec(`insert into jobs (queue, name, state, attempts, excused, epoch, started_at, locked_at, finished_at)
		select queue, 'Do', state, attempts, excused, case when state = 'running' then 1 end,
			now() - started * interval '1 s', now() - locked * interval '1 s', now() - finished * interval '1 s'
		from (values
			('q', 'done', 1, 0, 15, null, 14.0), ('q', 'done', 1, 0, 12, null, 1), ('q', 'dead', 3, 0, 19, null, 18),
			('q', 'running', 1, 0, null, 35, null),
			('q', 'pending', 2, 0, 38, null, 37), ('q', 'pending', 3, 1, 55, null, 54),
			('q', 'pending', 0, 0, null, null, null), ('q', 'pending', 1, 1, null, null, null),
			('q', 'done', 1, 0, 101, null, 99), ('q', 'done', 1, 0, 300, null, 200), ('q', 'pending', 1, 0, 130, null, 129),
			('q', 'running', 1, 0, null, 130, null), ('q', 'done', 1, 0, -5, null, -6),
			('other', 'done', 1, 0, 15, null, 14), ('other', 'running', 1, 0, null, 15, null)
		) j(queue, state, attempts, excused, started, locked, finished)`)
	all, err := a.Started(ctx, 100*time.Second, 5)
	finish(t, err)
	same(t, "started in parts of 20 s", inParts(all), []string{"3/12s", "2/35s", "1/55s"})
	all, err = a.Started(ctx, 100*time.Second, 1)
	finish(t, err)
	same(t, "started, of one part", inParts(all), []string{"6/12s"})
	s.exec(`truncate jobs`)
	all, err = a.Started(ctx, 31*24*time.Hour, 100)
	finish(t, err)
	same(t, "started in an empty queue", inParts(all), []string(nil))
}

// Its row still says when the attempt before was started.
func TestStartedCountsARunningSecondAttemptAtItsClaim(t *testing.T) {
	s := newSite(t)
	a := s.acquire(bid("a", 1, 1))
	s.exec(`insert into jobs (queue, name, state, attempts, epoch, started_at, locked_at)
		values ('q', 'Do', 'running', 2, 1, now() - interval '3 h', now() - interval '10 s')`)
	all, err := a.Started(ctx, time.Hour, 100)
	finish(t, err)
	same(t, "started", inParts(all), []string{"1/10s"})
}

// A connection that breaks again and again before it can say anything costs no more than if it broke once.
func TestWhatIsKeptIsChargedOnce(t *testing.T) {
	s := newSite(t)
	s.insert(2)
	a := s.acquire(bid("a", 1, 1))
	held := refs(s.claim(a, 2))
	for c := 2; c < 6; c++ {
		b := bid("a", 1, c)
		b.Epoch, b.Held = a.Epoch(), held
		a = s.acquire(b)
		if len(a.Kept) != 2 || a.Waiting != 2 {
			t.Fatalf("connection %d: kept %d and charged %d starts, want 2 and 2", c, len(a.Kept), a.Waiting)
		}
	}
}

// An operator's cancel ends the row that told of a start.
func TestTheStartOfACancelledJobIsCharged(t *testing.T) {
	s := newSite(t)
	s.insert(3)
	a := s.acquire(bid("a", 1, 1))
	claimed := s.claim(a, 2)
	if _, err := jobs.Schema("").Cancel(ctx, s.look, claimed[0].ID, 3); err != nil {
		t.Fatal(err)
	}
	if b := s.acquire(bid("a", 2, 1)); b.Waiting != 2 {
		t.Errorf("after a death: charged %d starts, want the 2 that the last Step claimed", b.Waiting)
	}
}
