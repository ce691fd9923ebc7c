package jobs_test

import (
	"errors"
	"testing"
	"time"

	"queuekeeper/jobs"
)

// pausing is a Step that pauses lanes.
func pausing(lanes map[string]jobs.LanePause) jobs.Step { return jobs.Step{Lanes: lanes} }

func TestALanePauseOfAStepIsStoredAndNeverShortened(t *testing.T) {
	s := newSite(t)
	a := s.acquire(bid("a", 1, 1))
	for _, c := range []struct {
		pause jobs.LanePause
		want  string // minutes left of the lane, its reason, minutes left of the latest of all
	}{
		{jobs.LanePause{For: 10 * time.Minute, Why: "first"}, "10 first 10"},
		{jobs.LanePause{For: 5 * time.Minute, Why: "shorter"}, "10 first 10"},
		{jobs.LanePause{For: 20 * time.Minute, Why: oddText}, "20 " + oddText + " 20"},
	} {
		if r := s.step(a, pausing(map[string]jobs.LanePause{oddText: c.pause})); !r.LanesPaused || r.Paused != 0 {
			t.Errorf("pause %+v: got lanes paused %v, queue paused %v; want true and not at all", c.pause, r.LanesPaused, r.Paused)
		}
		s.is(c.want, `select concat_ws(' ', round(extract(epoch from l.paused_until - now()) / 60), l.pause_reason,
			round(extract(epoch from lanes_paused_until - now()) / 60)) from lanes l join queues q on l.queue = q.queue
			where l.lane = $1`, oddText)
	}
	s.step(a, pausing(map[string]jobs.LanePause{"b": {For: time.Minute, Why: "b"}, "c": {For: time.Hour, Why: "c"}}))
	s.is("b 1, c 60 / 60", `select string_agg(lane || ' ' || round(extract(epoch from paused_until - now()) / 60), ', ' order by lane)
		|| ' / ' || (select round(extract(epoch from lanes_paused_until - now()) / 60) from queues) from lanes where lane in ('b', 'c')`)
	s.is("null", `select pause_reason from queues`)
}

func TestAPauseOfAStepIsNeverShortenedAndKeepsItsReason(t *testing.T) {
	s := newSite(t)
	a := s.acquire(bid("a", 1, 1))
	for _, c := range []struct {
		pause time.Duration
		why   string
		want  string
	}{
		{10 * time.Minute, oddText, "10 " + oddText},
		{5 * time.Minute, "shorter", "10 " + oddText},
		{0, "none", "10 " + oddText},
		{20 * time.Minute, "longer", "20 longer"},
	} {
		s.step(a, jobs.Step{Pause: c.pause, Why: c.why})
		s.is(c.want, `select concat_ws(' ', round(extract(epoch from paused_until - now()) / 60), pause_reason) from queues`)
	}
	s.exec(`update queues set paused_until = 'infinity', pause_reason = 'by hand'`)
	if got := s.step(a, jobs.Step{Pause: time.Hour, Why: "429"}).Paused; got != 24*time.Hour {
		t.Errorf("paused for %v, want at most a day", got)
	}
	s.is("infinity by hand", `select concat_ws(' ', paused_until, pause_reason) from queues`)
}

func TestALanePauseHoldsForTheClaimOfTheSameStepAndForOthers(t *testing.T) {
	s := newSite(t)
	s.lane("a", 2)
	s.lane("b", 2)
	s.lane("c", 2)
	a := s.acquire(bid("a", 1, 1))
	lanes := func(r jobs.Reply) (lanes []string) {
		for _, c := range r.Claimed {
			lanes = append(lanes, c.Lane)
		}
		return lanes
	}
	r := s.step(a, jobs.Step{Lanes: map[string]jobs.LanePause{"b": {For: time.Hour, Why: "429"}}, Turns: &jobs.Turns{}, Claim: 2, AskDue: true})
	same(t, "lanes of the same Step", lanes(r), []string{"a", "c"})
	near(t, "first lane that goes on", r.LaneDue, time.Hour)

	s.expire()
	b := s.acquire(bid("b", 1, 1))
	if len(s.step(b, jobs.Step{AskPauses: true}).PausedLanes) == 0 {
		t.Error("another process finds no lane paused, want one")
	}
	r = s.step(b, jobs.Step{Turns: &jobs.Turns{}, Claim: 9})
	same(t, "lanes of another process", lanes(r), []string{"a", "c"})
	s.exec(`insert into queues (queue) values ('other')`)
	s.exec(`insert into lanes (queue, lane, paused_until) values ('other', 'a', 'infinity')`)
	s.exec(`update jobs set run_at = now() - interval '1 s' where state = 'pending'`)
	s.exec(`update lanes set paused_until = now() - interval '1 ms' where lane = 'b'`)
	s.exec(`update queues set lanes_paused_until = now() - interval '1 ms'`)
	r = s.step(b, jobs.Step{Turns: &jobs.Turns{}, Claim: 9, AskDue: true})
	if r.LanesPaused || r.LaneDue != -1 {
		t.Errorf("after its end: lanes paused %v, the next goes on in %v; want false and none", r.LanesPaused, r.LaneDue)
	}
	same(t, "lanes after its end", lanes(r), []string{"a", "b", "c", "b"})
}

func TestARefusedStepPausesNoLane(t *testing.T) {
	s := newSite(t)
	a := s.acquire(bid("a", 1, 1))
	s.acquire(bid("a", 2, 1))
	if _, err := a.Step(ctx, pausing(map[string]jobs.LanePause{"b": {For: time.Hour}})); !errors.Is(err, jobs.ErrLeaseLost) {
		t.Errorf("step: %v, want ErrLeaseLost", err)
	}
	s.is("0 -infinity", `select concat_ws(' ', (select count(*) from lanes), lanes_paused_until) from queues`)
}

// A release is the last Step.
func TestAReleaseStoresPauses(t *testing.T) {
	s := newSite(t)
	a := s.acquire(bid("a", 1, 1))
	last := jobs.Step{Pause: time.Hour, Why: "all", Lanes: map[string]jobs.LanePause{oddText: {For: 2 * time.Hour, Why: "429"}}}
	finish(t, a.Release(ctx, last, jobs.LaneRates{Turns: map[string]time.Duration{oddText: time.Minute}}))
	b := s.acquire(bid("b", 1, 1))
	if len(s.step(b, jobs.Step{AskPauses: true}).PausedLanes) == 0 {
		t.Error("a lane has a pause: got false, want true")
	}
	s.is("60 all 120 429", `select concat_ws(' ', round(extract(epoch from q.paused_until - now()) / 60), q.pause_reason,
		round(extract(epoch from l.paused_until - now()) / 60), l.pause_reason) from queues q, lanes l`)
	if turn, known := b.Lanes.Turns[oddText]; !known || turn != 0 {
		t.Errorf("bucket of the lane: got empty %v ago (known: %v), want now: until the end of the pause", turn, known)
	}
	if _, err := b.Sweep(ctx, nil, atOnce); err != nil {
		t.Fatal(err)
	}
	s.exec(`update lanes set empty_at = '-infinity'`)
	if _, err := b.Sweep(ctx, nil, atOnce); err != nil {
		t.Fatal(err)
	}
	s.is("1", `select count(*) from lanes`) // its pause goes on
}

// suspect enqueues a job that is past its attempts.
func (s *site) suspect(lane string) {
	s.Helper()
	s.exec(`insert into jobs (queue, name, lane, attempts, max_attempts, run_at) values ('q', 'Do', $1, 3, 3, now() - interval '1 h')`, lane)
}

func TestSuspectsWaitForTheirLane(t *testing.T) {
	s := newSite(t)
	for _, c := range []struct {
		name   string
		turns  jobs.Turns
		before func(s *site) // job 1 is a suspect in lane a
		want   []int64
	}{
		{"a free lane", jobs.Turns{}, func(*site) {}, []int64{1}},
		{"a free lane, strict", jobs.Turns{Strict: true}, func(*site) {}, []int64{1}},
		{"its lane waits", jobs.Turns{Waiting: []string{"a"}}, func(s *site) { s.suspect("b") }, []int64{2}},
		{"its lane is paused", jobs.Turns{}, func(s *site) {
			s.exec(`insert into lanes (queue, lane, paused_until) values ('q', 'a', 'infinity'), ('other', 'b', 'infinity')`)
			s.suspect("b")
		}, []int64{2}},
		{"another of its lane runs", jobs.Turns{}, func(s *site) { s.running("a") }, []int64{1}},
		{"another of its lane runs, strict", jobs.Turns{Strict: true}, func(s *site) { s.running("a") }, nil},
		{"one of another lane runs, strict", jobs.Turns{Strict: true}, func(s *site) { s.running("b") }, []int64{1}},
		{"another of its lane waits for its retry", jobs.Turns{}, func(s *site) { s.retrying("a") }, []int64{1}},
		{"another of its lane waits for its retry, strict", jobs.Turns{Strict: true}, func(s *site) { s.retrying("a") }, nil},
		{"one of another lane waits for its retry, strict", jobs.Turns{Strict: true}, func(s *site) { s.retrying("b") }, []int64{1}},
	} {
		s.each(c.name, func(s *site) {
			s.suspect("a")
			c.before(s)
			a := s.acquire(bid("a", 1, 1))
			s.exec(`update jobs set epoch = 1, state = 'running' where state = 'dead'`)
			step := jobs.Step{Claim: 1, Suspect: true, Turns: &c.turns}
			head, err := a.Head(ctx, step)
			finish(s.T, err)
			got := ids(s.step(a, step).Claimed)
			same(s.T, "claimed", got, c.want)
			if want := append(c.want, 0)[0]; head != want {
				s.Errorf("head = %d, want the one that is claimed, %d", head, want)
			}
		})
	}
}

// running makes a job that the next holder finds running: as dead, until the test has acquired the queue.
func (s *site) running(lane string) {
	s.Helper()
	s.exec(`insert into jobs (queue, name, lane, attempts, max_attempts, state) values ('q', 'Do', $1, 1, 3, 'dead')`, lane)
}

func (s *site) retrying(lane string) {
	s.Helper()
	s.exec(`insert into jobs (queue, name, lane, attempts, max_attempts, run_at) values ('q', 'Do', $1, 1, 3, now() + interval '1 h')`, lane)
}

// A suspect is claimed by itself; until then nothing of its lane is where order is strict.
func TestASuspectIsNotOvertakenWhereOrderIsStrict(t *testing.T) {
	s := newSite(t)
	s.lane("a", 1)
	s.suspect("a")
	s.lane("b", 1)
	q := s.turner(jobs.Turns{Strict: true})
	same(t, "lanes", q.take(5), []string{"b"})
	r := s.step(q.a, jobs.Step{Claim: 1, Suspect: true, Turns: &q.turns})
	same(t, "suspect", ids(r.Claimed), []int64{2})
	same(t, "lanes while it runs", q.take(5), []string(nil))
	s.end(q.a, jobs.Ended{Ref: r.Claimed[0].Ref(), Kind: jobs.KindDone})
	q.take(5)
	same(t, "claimed once it has ended", ids(q.last.Claimed), []int64{1})
}

// Postgres refuses to let job 2 be claimed, the first of lane b.
func TestHeadFindsTheRefusedJobInTurnsToo(t *testing.T) {
	s := newSite(t)
	s.exec(`create function refuse() returns trigger language plpgsql as $$
		begin
			if new.id = 2 and new.state = 'running' then raise exception 'no' using errcode = '23514'; end if;
			return new;
		end $$`)
	s.exec(`create trigger refuse before update on jobs for each row execute function refuse()`)
	for name, turns := range map[string]jobs.Turns{
		"turns": {}, "weights": {Weights: map[string]int{"a": 2, "b": 3}}, "one of each": {One: true}, "strict": {Strict: true},
	} {
		s.each(name, func(s *site) {
			s.lane("a", 1)
			s.lane("b", 2)
			s.lane("a", 1)
			s.lane("c", 1)
			a := s.acquire(bid("a", 1, 1))
			// As a child does: all at once, then one by one until the head is the one that is refused.
			var claimed []int64
			empty := 0 // turns that came to nothing: what is left of those of lane b
			step := jobs.Step{Claim: 5, Turns: &turns}
			if _, err := a.Step(ctx, step); !jobs.IsDataError(err) {
				s.Fatalf("step: %v, want an error of data", err)
			}
			for step.Claim = 1; ; {
				r, err := a.Step(ctx, step)
				if err == nil {
					step.Rates.Lane, step.Rates.LaneLeft = r.Lane, r.LaneLeft
					if len(r.Claimed) == 0 {
						if empty++; empty > 3 {
							break
						}
						continue
					}
					claimed = append(claimed, r.Claimed[0].ID)
					s.end(a, jobs.Ended{Ref: r.Claimed[0].Ref(), Kind: jobs.KindDone})
					continue
				}
				head, err := a.Head(ctx, step)
				finish(s.T, err)
				if head != 2 || step.Skip != nil {
					s.Fatalf("head after %v, skipping %v = %d, want the refused one, 2", claimed, step.Skip, head)
				}
				step.Skip = []int64{head}
			}
			same(s.T, "number of claimed jobs", len(claimed), 4)
			s.row(2, "pending 0 0 0")
		})
	}
}
