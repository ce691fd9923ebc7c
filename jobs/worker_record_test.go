package jobs_test

import (
	"testing"
	"time"

	"queuekeeper/internal/testdb"
	"queuekeeper/jobs"
)

func TestAnOutcomeMovesTheJob(t *testing.T) {
	s := newSite(t)
	for _, c := range []struct {
		name                        string
		attempts, excused, maximum  int // as the claim finds them
		end                         jobs.Ended
		want, wantDelay, wantFinish string
	}{
		{"done", 0, 0, 3, jobs.Ended{Kind: jobs.KindDone}, "done 1 0 0", "-01:00:00", "true"},
		{"dead", 0, 0, 3, jobs.Ended{Kind: jobs.KindDead}, "dead 1 0 0", "-01:00:00", "true"},
		{"fail", 0, 0, 3, jobs.Ended{Kind: jobs.KindFail, Delay: time.Minute}, "pending 1 0 0", "00:01:00", "true"},
		{"fail at once", 0, 0, 3, jobs.Ended{Kind: jobs.KindFail}, "pending 1 0 0", "-01:00:00", "true"},
		{"last fail", 2, 0, 3, jobs.Ended{Kind: jobs.KindFail, Delay: time.Minute}, "dead 3 0 0", "00:01:00", "true"},
		{"fail with an excuse", 2, 1, 3, jobs.Ended{Kind: jobs.KindFail}, "pending 3 1 0", "-01:00:00", "true"},
		{"last company", 2, 0, 3, jobs.Ended{Kind: jobs.KindCompany}, "pending 3 0 0", "-01:00:00", "true"},
		{"last excused", 2, 0, 3, jobs.Ended{Kind: jobs.KindExcused}, "pending 3 1 0", "-01:00:00", "false"},
		{"excused after its start", 2, 0, 3, jobs.Ended{Kind: jobs.KindExcused, Started: time.Now()}, "pending 3 1 0", "-01:00:00", "true"},
		{"last throttled", 2, 0, 3, jobs.Ended{Kind: jobs.KindThrottled}, "pending 3 1 1", "-01:00:00", "true"},
	} {
		s.each(c.name, func(s *site) {
			s.insert(1)
			s.exec(`update jobs set attempts = $1, excused = $2, max_attempts = $3`, c.attempts, c.excused, c.maximum)
			a := s.acquire(bid("a", 1, 1))
			c.end.Ref = s.claim(a, 1)[0].Ref()
			s.end(a, c.end)
			s.row(1, c.want)
			s.is("true", `select epoch is null and locked_at is null and locked_by is null from jobs`)
			s.is(c.wantFinish, `select finished_at is not null from jobs`)
			s.is(c.wantDelay, `select case when run_at > now() then make_interval(mins => round(extract(epoch from run_at - now()) / 60)::int)
				else make_interval(hours => round(extract(epoch from run_at - now()) / 3600)::int) end from jobs`)
		})
	}
}

func TestAnErrorStaysUntilTheJobIsDone(t *testing.T) {
	s := newSite(t)
	s.insert(1)
	a := s.acquire(bid("a", 1, 1))
	for _, c := range []struct {
		end  jobs.Ended
		want string
	}{
		{jobs.Ended{Kind: jobs.KindFail, Error: "no luck"}, "no luck"},
		{jobs.Ended{Kind: jobs.KindExcused}, "no luck"},
		{jobs.Ended{Kind: jobs.KindThrottled, Error: "later"}, "later"},
		{jobs.Ended{Kind: jobs.KindDone}, "null"},
	} {
		c.end.Ref = s.claim(a, 1)[0].Ref()
		s.end(a, c.end)
		s.is(c.want, `select last_error from jobs`)
	}
}

func TestTheStartOfTheHandlerIsStored(t *testing.T) {
	s := newSite(t)
	s.insert(1)
	a := s.acquire(bid("a", 1, 1))
	s.end(a, jobs.Ended{Ref: s.claim(a, 1)[0].Ref(), Kind: jobs.KindFail, Started: time.Now().Add(-time.Hour)})
	s.is("3600", `select round(extract(epoch from finished_at - started_at) / 10) * 10 from jobs`)
}

// CR05: another took the job over and had its last attempt.
func TestAnOutcomeOfAnEarlierAttemptIsNotRecorded(t *testing.T) {
	s := newSite(t)
	s.insert(2)
	s.exec(`update jobs set max_attempts = 3, attempts = 1`)
	a := s.acquire(bid("a", 1, 1))
	stale := s.claim(a, 1)[0]
	s.exec(`update jobs set state = 'pending', epoch = null, locked_at = null, locked_by = null where id = 1`)
	again := s.claim(a, 1)[0]
	reply := s.step(a, jobs.Step{
		Ended: []jobs.Ended{{Ref: again.Ref(), Kind: jobs.KindFail}, {Ref: stale.Ref(), Kind: jobs.KindDone}},
		Held:  []jobs.Ref{stale.Ref(), again.Ref()}, Claim: 1,
	})
	same(t, "recorded", reply.Recorded, []int64{1})
	same(t, "claimed beside it", ids(reply.Claimed), []int64{2})
	s.end(a, jobs.Ended{Ref: reply.Claimed[0].Ref(), Kind: jobs.KindDone})
	reply = s.step(a, jobs.Step{Ended: []jobs.Ended{{Ref: stale.Ref(), Kind: jobs.KindFail}}})
	same(t, "recorded later", reply.Recorded, []int64{})
	s.row(1, "dead 3 0 0")
}

func TestWhatIsNoLongerOursIsTold(t *testing.T) {
	s := newSite(t)
	s.insert(4)
	a := s.acquire(bid("a", 1, 1))
	claimed := s.claim(a, 4)
	if _, err := jobs.Schema("").Cancel(ctx, s.look, 1); err != nil {
		t.Fatal(err)
	}
	s.exec(`delete from jobs where id = 2`)
	s.exec(`update jobs set epoch = 9 where id = 3`)
	reply := s.step(a, jobs.Step{Held: append(refs(claimed), jobs.Ref{ID: 4, Attempt: 2})})
	gone := map[int64]int{}
	for _, id := range reply.Gone {
		gone[id]++
	}
	same(t, "gone", gone, map[int64]int{1: 1, 2: 1, 3: 1, 4: 1})
	if got := s.step(a, jobs.Step{Held: refs(claimed[3:])}).Gone; len(got) != 0 {
		t.Errorf("gone = %v, want none: job 4 runs here", got)
	}
}

func TestAnOperatorsLockOnOneJobStopsNothingElse(t *testing.T) {
	s := newSite(t)
	s.insert(4)
	a := s.acquire(bid("a", 1, 1))
	claimed := s.claim(a, 2)
	operator := testdb.Connect(t, s.url)
	tx, err := operator.Begin(ctx)
	finish(t, err)
	_, err = tx.Exec(ctx, `select from jobs where id in (1, 3) for update`)
	finish(t, err)
	ended := []jobs.Ended{{Ref: claimed[0].Ref(), Kind: jobs.KindDone}, {Ref: claimed[1].Ref(), Kind: jobs.KindDone}}
	reply := s.step(a, jobs.Step{Ended: ended, Claim: 5})
	same(t, "recorded", reply.Recorded, []int64{2})
	same(t, "claimed", ids(reply.Claimed), []int64{4})

	// Another acquires and has to leave the locked one; its Sweep finds it later.
	b := s.acquire(bid("a", 2, 1))
	if len(b.Recovered) != 1 || b.Recovered[0].ID != 4 {
		t.Errorf("recovered %v, want job 4 alone", b.Recovered)
	}
	finish(t, tx.Rollback(ctx))
	s.row(1, "running 1 0 0")
	held := s.claim(b, 1)
	same(t, "claimed then", ids(held), []int64{3})
	swept, err := b.Sweep(ctx, refs(held), bid("a", 2, 1).Backoff)
	finish(t, err)
	if len(swept) != 1 || swept[0].ID != 1 {
		t.Errorf("swept %v, want job 1 alone", swept)
	}
	s.row(1, "pending 1 0 0")
	s.row(3, "running 1 0 0")
}

func TestAnOutcomeLeftForALockIsRecordedLater(t *testing.T) {
	s := newSite(t)
	s.insert(1)
	a := s.acquire(bid("a", 1, 1))
	done := jobs.Ended{Ref: s.claim(a, 1)[0].Ref(), Kind: jobs.KindDone}
	tx, err := s.look.Begin(ctx)
	finish(t, err)
	_, err = tx.Exec(ctx, `select from jobs for share`)
	finish(t, err)
	if got := s.step(a, jobs.Step{Ended: []jobs.Ended{done}}).Recorded; len(got) != 0 {
		t.Errorf("recorded %v under a lock, want none", got)
	}
	finish(t, tx.Commit(ctx))
	s.end(a, done)
}

func TestRefusedDataIsToldFromOtherFaults(t *testing.T) {
	s := newSite(t)
	for code, want := range map[string]bool{"23514": true, "P0001": true, "22003": true, "40001": false, "57014": false} {
		s.each(code, func(s *site) {
			s.insert(2)
			a := s.acquire(bid("a", 1, 1))
			claimed := s.claim(a, 1)
			s.exec(`create or replace function refuse() returns trigger language plpgsql as
				$$ begin raise exception 'no' using errcode = '` + code + `'; end $$`)
			s.exec(`create or replace trigger refuse before update on jobs for each row execute function refuse()`)
			_, err := a.Step(ctx, jobs.Step{Ended: []jobs.Ended{{Ref: claimed[0].Ref(), Kind: jobs.KindDone}}})
			if err == nil || jobs.IsDataError(err) != want {
				s.Errorf("record: %v: data error %v, want %v", err, !want, want)
			}
			_, err = a.Step(ctx, jobs.Step{Claim: 1, Starts: 5})
			if err == nil || jobs.IsDataError(err) != want {
				s.Errorf("claim: %v: data error %v, want %v", err, !want, want)
			}
			s.is("0", `select starts from queues`) // all of a Step or nothing
			head, err := a.Head(ctx, jobs.Step{})
			if head != 2 || err != nil {
				s.Errorf("head = %d, %v; want 2: the one that cannot be claimed", head, err)
			}
			s.step(a, jobs.Step{Claim: 1, Skip: []int64{2}})
			s.exec(`drop trigger refuse on jobs`)
		})
	}
}
