package jobs_test

import (
	"fmt"
	"testing"
	"time"

	"queuekeeper/jobs"
)

func TestJobsAreClaimedInTheOrderTheyAreDue(t *testing.T) {
	s := newSite(t)
	s.insert(5)
	s.exec(`update jobs set run_at = now() - interval '2 h' where id = 4`)
	s.exec(`insert into jobs (queue, name) values ('other', 'Do')`)
	a := s.acquire(bid("a", 1, 1))
	same(t, "first two", ids(s.claim(a, 2)), []int64{4, 1})
	reply := s.step(a, jobs.Step{Claim: 9, Skip: []int64{3}})
	same(t, "the rest without 3", ids(reply.Claimed), []int64{2, 5})
	same(t, "the last", ids(s.claim(a, 9)), []int64{3})
	s.is("5 5", `select count(*) || ' ' || count(*) filter (where epoch = 1 and locked_by = 'web-a/1' and locked_at <= now())
		from jobs where state = 'running'`)
}

func TestAHeadIsWhatAClaimOfOneTakes(t *testing.T) {
	s := newSite(t)
	a := s.acquire(bid("a", 1, 1))
	for _, c := range []struct {
		skip []int64
		want int64
	}{{nil, 0}, {nil, 1}, {[]int64{1}, 2}, {[]int64{1, 2}, 0}} {
		got, err := a.Head(ctx, jobs.Step{Skip: c.skip})
		if got != c.want || err != nil {
			t.Errorf("head without %v = %d, %v; want %d", c.skip, got, err, c.want)
		}
		if c.want == 0 {
			s.insert(2)
		}
	}
}

func TestAClaimedJobIsWhole(t *testing.T) {
	s := newSite(t)
	s.exec(`insert into jobs (queue, name, args, lane, attempts, excused, throttled, requeues, run_at) values
		('q', 'Do', '{"n": 0.1000000000000000055}', 'urgent', 4, 3, 2, 1, now() - interval '1 h'),
		('q', 'Do', null, 'default', 0, 0, 0, 0, '-infinity')`)
	got := s.claim(s.acquire(bid("a", 1, 1)), 2)
	whole := jobs.Job{ID: 1, Queue: "q", Name: "Do", Args: []byte(`{"n": 0.1000000000000000055}`), Lane: "urgent", Attempt: 5, Requeues: 1}
	same(t, "claimed", got, []jobs.Claimed{
		{Job: jobs.Job{ID: 2, Queue: "q", Name: "Do", Args: []byte(`{}`), Lane: "default", Attempt: 1}, Counted: 1, Limit: 20},
		{Job: whole, Counted: 2, Throttled: 2, Limit: 20},
	})
}

func TestTheClaimWritesTheLimitIn(t *testing.T) {
	s := newSite(t)
	s.exec(`insert into jobs (queue, name, max_attempts) values ('q', 'Do', null), ('q', 'Twice', null), ('q', 'Twice', 7)`)
	s.claim(s.acquire(bid("a", 1, 1)), 3)
	s.is("20 2 7", `select string_agg(max_attempts::text, ' ' order by id) from jobs`)
}

func TestAPausedQueueClaimsNothing(t *testing.T) {
	s := newSite(t)
	s.insert(1)
	a := s.acquire(bid("a", 1, 1))
	reply := s.step(a, jobs.Step{Claim: 1, Pause: time.Hour, Why: "429"})
	near(t, "paused", reply.Paused, time.Hour)
	if len(reply.Claimed) != 0 {
		t.Errorf("claimed %v, want none", reply.Claimed)
	}
	near(t, "paused after a shorter one", s.step(a, jobs.Step{Pause: time.Minute}).Paused, time.Hour)
	a = s.acquire(bid("a", 2, 1))
	reply = s.step(a, jobs.Step{Claim: 1})
	near(t, "paused for the next holder", reply.Paused, time.Hour)
	s.exec(`update queues set paused_until = 'infinity'`)
	if got := s.step(a, jobs.Step{Claim: 1}); got.Paused != 24*time.Hour || len(got.Claimed) != 0 {
		t.Errorf("paused for %v, claimed %v; want a day at most and none", got.Paused, got.Claimed)
	}
	s.exec(`update queues set paused_until = now()`)
	if got := s.step(a, jobs.Step{Claim: 1}); got.Paused != 0 || len(got.Claimed) != 1 {
		t.Errorf("paused for %v, claimed %v; want 0 and one", got.Paused, got.Claimed)
	}
}

// SC02: durations of Go end at 292 years, those of Postgres at 'infinity'.
func TestTheNextDueTimeIsBoundedByADay(t *testing.T) {
	s := newSite(t)
	for at, want := range map[string]time.Duration{
		`now() + interval '90 s'`:                  90 * time.Second,
		`now() + interval '25 days'`:               24 * time.Hour,
		`now() + interval '293 years'`:             24 * time.Hour,
		`now() + interval '5000 years'`:            24 * time.Hour,
		`'294276-12-31 23:59:59+00'::timestamptz`:  24 * time.Hour,
		`'infinity'::timestamptz`:                  24 * time.Hour,
		`'-infinity'::timestamptz`:                 -1, // due: claimed
		`'4714-11-24 00:00:00+00 BC'::timestamptz`: -1,
	} {
		s.each(at, func(s *site) {
			s.exec(`insert into jobs (queue, name, run_at) values ('q', 'Do', ` + at + `)`)
			reply := s.step(s.acquire(bid("a", 1, 1)), jobs.Step{Claim: 2, AskDue: true})
			if reply.Due > want || reply.Due < want-time.Minute || (want < 0) != (len(reply.Claimed) == 1) {
				s.Errorf("due in %v, claimed %v; want due in %v", reply.Due, ids(reply.Claimed), want)
			}
		})
	}
}

func TestTheNextDueTimeKnowsTheRetriesOfItsStep(t *testing.T) {
	s := newSite(t)
	s.insert(2)
	s.exec(`insert into jobs (queue, name, run_at) values ('q', 'Do', now() + interval '1 h')`)
	a := s.acquire(bid("a", 1, 1))
	first := s.step(a, jobs.Step{Claim: 1})
	near(t, "due", s.step(a, jobs.Step{Claim: 9, AskDue: true}).Due, time.Hour)
	// A retry that this very Step records.
	fail := jobs.Ended{Ref: first.Claimed[0].Ref(), Kind: jobs.KindFail, Delay: time.Minute}
	near(t, "due after a failure", s.step(a, jobs.Step{Ended: []jobs.Ended{fail}, AskDue: true}).Due, time.Minute)
}

func TestASuspectIsClaimedOnlyWhenAskedFor(t *testing.T) {
	s := newSite(t)
	s.insert(3)
	s.exec(`update jobs set max_attempts = 3, attempts = case id when 1 then 3 else 2 end`)
	a := s.acquire(bid("a", 1, 1))
	reply := s.step(a, jobs.Step{Claim: 1, AskDue: true})
	if fmt.Sprint(ids(reply.Claimed)) != "[2]" || reply.Claimed[0].Suspect || reply.SuspectDue != 0 {
		t.Errorf("claimed %v, suspect due in %v; want job 2 alone and 0", reply.Claimed, reply.SuspectDue)
	}
	reply = s.step(a, jobs.Step{Claim: 9, Suspect: true})
	if fmt.Sprint(ids(reply.Claimed)) != "[1]" || !reply.Claimed[0].Suspect {
		t.Errorf("claimed %v, want job 1 alone", reply.Claimed)
	}
	reply = s.step(a, jobs.Step{Claim: 9, AskDue: true})
	if fmt.Sprint(ids(reply.Claimed)) != "[3]" || reply.SuspectDue != -1 {
		t.Errorf("claimed %v, suspect due in %v; want job 3 and none", reply.Claimed, reply.SuspectDue)
	}
}

func TestThrottledAttemptsDoNotCount(t *testing.T) {
	s := newSite(t)
	s.insert(1)
	a := s.acquire(bid("a", 1, 1))
	for i := range 3 {
		got := s.claim(a, 1)[0]
		if got.Attempt != i+1 || got.Counted != 1 {
			t.Errorf("attempt %d, counted %d; want %d and 1", got.Attempt, got.Counted, i+1)
		}
		s.end(a, jobs.Ended{Ref: got.Ref(), Kind: jobs.KindThrottled})
	}
	s.row(1, "pending 3 3 3")
}

// CR14: slots come from what runs in this process, not from counting rows.
func TestForeignRunningRowsTakeNoSlot(t *testing.T) {
	s := newSite(t)
	a := s.acquire(bid("a", 1, 1))
	s.exec(`insert into jobs (queue, name, state, epoch, attempts, locked_at, locked_by)
		select 'q', 'Do', 'running', 9, 1, now(), 'other-host/9' from generate_series(1, 3)`)
	s.insert(5)
	for want := int64(4); want <= 8; want++ {
		got := s.claim(a, 1)
		same(t, "claimed", ids(got), []int64{want})
		s.end(a, jobs.Ended{Ref: got[0].Ref(), Kind: jobs.KindDone})
	}
}

// UN02
func TestARetryKeepsItsKey(t *testing.T) {
	s := newSite(t)
	s.exec(`insert into jobs (queue, name, unique_key) values ('q', 'Do', 'k')`)
	a := s.acquire(bid("a", 1, 1))
	s.end(a, jobs.Ended{Ref: s.claim(a, 1)[0].Ref(), Kind: jobs.KindFail, Delay: time.Hour})
	if got := enqueue(t, s.look, jobs.New{Queue: "q", Name: "Do", UniqueKey: "k"}); got != (jobs.Enqueued{ID: 1, Existing: true}) {
		t.Errorf("enqueue = %+v, want job 1 told as existing", got)
	}
	s.exec(`update jobs set run_at = now()`)
	s.end(a, jobs.Ended{Ref: s.claim(a, 1)[0].Ref(), Kind: jobs.KindDone})
	s.row(1, "done 2 0 0")
}

// UN07: waiting for its time, for a retry, and for a restart.
func TestUniqueJobsEndWhateverInterruptsThem(t *testing.T) {
	s := newSite(t)
	s.exec(`insert into jobs (queue, name, unique_key) values ('q', 'Do', 'fails'), ('q', 'Do', 'is interrupted')`)
	s.exec(`insert into jobs (queue, name, unique_key, run_at) values ('q', 'Do', 'is later', now() + interval '1 h')`)
	a := s.acquire(bid("a", 1, 1))
	claimed := s.claim(a, 3)
	same(t, "claimed", ids(claimed), []int64{1, 2})
	s.end(a, jobs.Ended{Ref: claimed[0].Ref(), Kind: jobs.KindFail, Delay: time.Hour})
	finish(t, a.Release(ctx, jobs.Step{Ended: []jobs.Ended{{Ref: claimed[1].Ref(), Kind: jobs.KindExcused}}}, jobs.LaneRates{}))
	s.exec(`update jobs set run_at = now()`)
	a = s.acquire(bid("a", 2, 1))
	for _, c := range s.claim(a, 9) {
		s.end(a, jobs.Ended{Ref: c.Ref(), Kind: jobs.KindDone})
	}
	s.is("3", `select count(*) from jobs where state = 'done'`)
}
