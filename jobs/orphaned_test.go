package jobs_test

import (
	"errors"
	"sync"
	"testing"

	"queuekeeper/jobs"
)

// steward is the bid of one who sweeps, on the machine of supervisor "a".
func steward(id string) jobs.Bid {
	b := bid(id, 1, 1)
	b.Holder.Host = "web-a"
	return b
}

// orphan is the only queue that may have nobody.
func (s *site) orphan() jobs.Orphan {
	s.Helper()
	all, err := jobs.Schema("").Orphans(ctx, s.look, steward("s").Holder)
	if err != nil || len(all) != 1 {
		s.Fatalf("orphans = %+v, %v, want one", all, err)
	}
	return all[0]
}

// sweeps wants the sweep to bring back these jobs.
func (s *site) sweeps(o jobs.Orphan, want ...int64) {
	s.Helper()
	ended, err := jobs.Schema("").Sweep(ctx, s.worker(), o, steward("s"))
	var got []int64
	for _, e := range ended {
		got = append(got, e.ID)
	}
	finish(s.T, err)
	same(s.T, "swept", got, want)
	s.is("null", `select string_agg(queue, ' ') from queues where supervisor is not null or expires_at > now()`)
}

func TestSweepBringsBackWhatNobodyWorksOn(t *testing.T) {
	s := newSite(t)
	s.each("the queue has no row", func(s *site) {
		s.exec(`insert into jobs (queue, name, state, attempts, max_attempts, epoch) values ('q', 'Do', 'running', 1, 20, 9)`)
		s.sweeps(s.orphan(), 1)
		s.row(1, "pending 1 0 0")
		s.is("left running by an earlier holder of the queue", `select last_error from jobs`)
	})
	s.each("the queue is free", func(s *site) {
		a := s.acquire(bid("a", 1, 1))
		finish(t, a.Release(ctx, jobs.Step{}, jobs.LaneRates{}))
		s.exec(`insert into jobs (queue, name, state, attempts, max_attempts, epoch) values ('q', 'Do', 'running', 20, 20, 1)`)
		s.sweeps(s.orphan(), 1)
		s.row(1, "dead 20 0 0")
	})
	s.each("the lease has run out", func(s *site) {
		s.insert(2)
		s.claim(s.acquire(bid("b", 1, 1)), 1)
		s.expire()
		o := s.orphan()
		if o.Leased || o.Here {
			t.Errorf("orphan = %+v, want its lease over and its holder elsewhere", o)
		}
		s.sweeps(o, 1)
		s.row(1, "pending 1 0 0")
		s.is("lease of web-b/1 expired", `select last_error from jobs where id = 1`)
		s.sweeps(o) // nothing is left, and the row is free
	})
	s.each("the holder's process is gone", func(s *site) {
		s.insert(1)
		s.claim(s.acquire(bid("a", 1, 1)), 1)
		o := s.orphan()
		if !o.Leased || !o.Here || o.Holder.PID != 1 || o.Holder.Supervisor != "a" {
			t.Errorf("orphan = %+v, want a lease of process 1 of this machine", o)
		}
		s.sweeps(o, 1)
		s.is("process web-a/1 is gone", `select last_error from jobs`)
	})
	s.each("rows that others lock stay", func(s *site) {
		s.exec(`insert into jobs (queue, name, state, attempts, max_attempts, epoch) values ('q', 'Do', 'running', 1, 20, 1),
			('q', 'Do', 'running', 1, 20, 1)`)
		tx, err := s.worker().Begin(ctx)
		finish(t, err)
		defer tx.Rollback(ctx)
		_, err = tx.Exec(ctx, `select from jobs where id = 1 for update`)
		finish(t, err)
		s.sweeps(s.orphan(), 2)
	})
}

func TestQueueWithALivingLeaseIsNoOrphan(t *testing.T) {
	s := newSite(t)
	s.insert(1)
	s.claim(s.acquire(bid("b", 1, 1)), 1)
	s.exec(`insert into queues (queue) values ('idle')`) // and no jobs
	for name, here := range map[string]jobs.Holder{"another machine": steward("s").Holder, "an unknown machine": {}} {
		if all, err := jobs.Schema("").Orphans(ctx, s.look, here); err != nil || len(all) > 0 {
			t.Errorf("orphans as seen from %s = %+v, %v, want none", name, all, err)
		}
	}
	// Whatever the look said: it has been renewed, or taken, since.
	s.expire()
	o := s.orphan()
	s.exec(`update queues set expires_at = now() + interval '10 s'`)
	s.held(o)
	s.exec(`update queues set host = 'web-a'`)
	o = s.orphan()
	s.exec(`update queues set expires_at = now() + interval '20 s'`)
	s.held(o)
	s.row(1, "running 1 0 0")
	s.is("b 1", `select supervisor || ' ' || epoch from queues where queue = 'q'`)
}

// held wants the sweep refused.
func (s *site) held(o jobs.Orphan) {
	s.Helper()
	var held *jobs.HeldError
	if ended, err := jobs.Schema("").Sweep(ctx, s.worker(), o, steward("s")); !errors.As(err, &held) {
		s.Errorf("sweep = %v, %v, want a HeldError", ended, err)
	}
}

func TestSweepKeepsThePaceAndWhatTheLastHolderSaidOfItself(t *testing.T) {
	s := newSite(t)
	for _, since := range []string{"now() - interval '1234567.891 s'", "now() - interval '0.5 s'"} {
		s.each(since, func(s *site) {
			s.exec(`insert into queues (queue, empty_at, starts, settings, paused_until, pause_reason)
				values ('q', ` + since + `, 7, '{"max_jobs_per_second": 2}', 'infinity', 'why')`)
			s.exec(`insert into jobs (queue, name, state, attempts, epoch) values ('q', 'Do', 'running', 1, 1)`)
			rest := `select concat_ws(' ', starts, settings, paused_until, pause_reason) from queues`
			before, pace := column(t, s.look, rest), column(t, s.look, `select empty_at from queues`)
			s.sweeps(s.orphan(), 1)
			s.is(before, rest)
			// A microsecond later, by rounding: that is never too early.
			s.is("true", `select empty_at - $1::timestamptz between interval '0' and interval '2 microseconds' from queues`, pace)
		})
	}
	s.each("taken from the dead", func(s *site) {
		s.insert(1)
		s.claim(s.acquire(bid("b", 1, 1)), 1)
		s.exec(`update queues set empty_at = now() - interval '1 h'`)
		s.expire()
		s.sweeps(s.orphan(), 1)
		s.is("true", `select empty_at > now() - interval '1 min' from queues`)
	})
}

func TestOfTwoSweepsAtOnceOneBringsTheJobsBack(t *testing.T) {
	s := newSite(t)
	for range 10 {
		s.exec(`insert into jobs (queue, name, state, attempts, max_attempts, epoch)
			select 'q', 'Do', 'running', 1, 20, 1 from generate_series(1, 20)`)
		o := s.orphan()
		var both sync.WaitGroup
		var swept [2][]jobs.Ended
		for i, id := range []string{"s", "t"} {
			conn := s.worker()
			both.Go(func() {
				var err error
				if swept[i], err = jobs.Schema("").Sweep(ctx, conn, o, steward(id)); err != nil {
					t.Errorf("sweep: %v, want nil", err)
				}
			})
		}
		both.Wait()
		if got := [2]int{len(swept[0]), len(swept[1])}; got != [2]int{0, 20} && got != [2]int{20, 0} {
			t.Errorf("swept = %v, want all 20 by one of the two", got)
		}
		s.is("20 pending 1", `select concat_ws(' ', count(*), state, attempts) from jobs group by state, attempts`)
		s.exec(`truncate jobs restart identity`)
	}
}

func TestDueJobsWithoutAWorkerAreCountedUpToALimit(t *testing.T) {
	s := newSite(t)
	s.exec(`insert into jobs (queue, name, run_at, state)
		select q, 'Do', case when q = 'later' then 'infinity' else now() - i * interval '1 s' end::timestamptz,
			case when q = 'dead' then 'dead' else 'pending' end
		from unnest(array['a', 'few', 'later', 'dead', 'z']) q, generate_series(1, case when q = 'few' then 3 else 1500 end) i`)
	for _, c := range []struct {
		served []string
		want   map[string]int64
	}{
		{[]string{"a"}, map[string]int64{"few": 3, "z": jobs.CountedMost + 1}},
		{[]string{"a", "few", "z", "none"}, map[string]int64{}},
		{nil, map[string]int64{"a": jobs.CountedMost + 1, "few": 3, "z": jobs.CountedMost + 1}},
	} {
		got, err := jobs.Schema("").Unserved(ctx, s.look, c.served)
		finish(t, err)
		same(t, "unserved", got, c.want)
	}
}

func TestNoJobsAtAllAreUnserved(t *testing.T) {
	s := newSite(t)
	if got, err := jobs.Schema("").Unserved(ctx, s.look, nil); err != nil || len(got) != 0 {
		t.Errorf("unserved = %v, %v, want none", got, err)
	}
}
