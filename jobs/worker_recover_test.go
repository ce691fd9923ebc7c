package jobs_test

import (
	"fmt"
	"testing"

	"queuekeeper/jobs"
)

// Why an attempt ended that its process cannot tell of any more.
func TestWhatTheLastHolderLeftRunningComesBackWithItsCause(t *testing.T) {
	died := jobs.Death{N: 1, Cause: "child killed by signal 9"}
	stopped := jobs.Death{N: 1, Cause: "child did not answer", Ours: true}
	s := newSite(t)
	for name, c := range map[string]struct {
		next     jobs.Bid
		deaths   []jobs.Death
		expired  bool
		dead     bool // the next one knows the lease to be dead
		counts   bool
		want     string
		lostStep bool // the claim's reply was lost: the process lives and bids again
	}{
		"it died":     {next: bid("a", 2, 1), deaths: []jobs.Death{died}, counts: true, want: died.Cause},
		"we ended it": {next: bid("a", 2, 1), deaths: []jobs.Death{stopped}, want: stopped.Cause},
		"an older one died": {next: bid("a", 3, 1), deaths: []jobs.Death{{N: 2, Cause: "exit status 3"}, died},
			counts: true, want: died.Cause},
		"nobody knows":            {next: bid("a", 2, 1), counts: true, want: "left running by an earlier holder of the queue"},
		"its lease expired":       {next: bid("b", 1, 1), expired: true, counts: true, want: "lease of web-a/1 expired"},
		"its process is gone":     {next: bid("b", 1, 1), dead: true, counts: true, want: "process web-a/1 is gone"},
		"the claim was not heard": {next: bid("a", 1, 2), lostStep: true, want: "null"},
	} {
		s.each(name, func(s *site) {
			s.insert(1)
			a := s.acquire(bid("a", 1, 1))
			s.claim(a, 1)
			if c.expired {
				s.expire()
			}
			if c.dead {
				c.next.Free = &s.refused(c.next).Seen
			}
			if c.lostStep {
				c.next.Epoch = a.Epoch()
			}
			c.next.Deaths = c.deaths
			got := s.acquire(c.next).Recovered
			if len(got) != 1 || got[0].Ref != (jobs.Ref{ID: 1, Attempt: 1}) {
				s.Fatalf("recovered %v, want the first attempt of job 1", got)
			}
			s.is(c.want, `select last_error from jobs`)
			if c.counts {
				s.row(1, "pending 1 0 0")
				s.is("true", `select run_at > now() + interval '50 s' from jobs`) // its back-off
			} else {
				s.row(1, "pending 1 1 0")
				s.is("true", `select run_at < now() from jobs`) // it keeps its place
			}
		})
	}
}

// The reply of an acquire was lost: rows are under an epoch the process never heard of.
func TestAnAcquireThatWasNotHeardLosesNothing(t *testing.T) {
	s := newSite(t)
	s.insert(3)
	a := s.acquire(bid("a", 1, 1))
	held := refs(s.claim(a, 2))
	for c := range 3 {
		b := bid("a", 1, 2+c)
		b.Epoch, b.Held = a.Epoch(), held
		same(t, "kept", s.acquire(b).Kept, []int64{1, 2})
	}
	s.is("4 4", `select string_agg(epoch::text, ' ') from jobs where state = 'running'`)
}

func TestWhatTheProcessHoldsMovesToTheNewEpoch(t *testing.T) {
	s := newSite(t)
	s.insert(6)
	a := s.acquire(bid("a", 1, 1))
	claimed := s.claim(a, 5)
	s.exec(`update jobs set state = 'dead', epoch = null, locked_at = null, locked_by = null where id = 1`) // cancelled
	s.exec(`delete from jobs where id = 2`)
	s.end(a, jobs.Ended{Ref: claimed[2].Ref(), Kind: jobs.KindDone}) // and the answer was lost
	b := bid("a", 1, 2)
	b.Epoch, b.Held = a.Epoch(), append(refs(claimed[:4]), jobs.Ref{ID: 6, Attempt: 1})
	got := s.acquire(b)
	same(t, "kept", got.Kept, []int64{4})
	if len(got.Recovered) != 1 || got.Recovered[0].ID != 5 || got.Recovered[0].Kind != jobs.KindExcused {
		t.Errorf("recovered %v, want job 5 excused: its claim was not heard", got.Recovered)
	}
	s.row(3, "done 1 0 0")
	s.row(4, "running 1 0 0")
	s.end(got, jobs.Ended{Ref: claimed[3].Ref(), Kind: jobs.KindDone})
	s.row(6, "pending 0 0 0")
}

func TestNothingIsKeptAfterAnotherHeldTheQueue(t *testing.T) {
	s := newSite(t)
	for _, released := range []bool{false, true} {
		s.each(fmt.Sprint("released ", released), func(s *site) {
			s.insert(1)
			a := s.acquire(bid("a", 1, 1))
			held := refs(s.claim(a, 1))
			s.expire()
			b := s.acquire(bid("b", 1, 1))
			if released {
				finish(s.T, b.Release(ctx, jobs.Step{}, jobs.LaneRates{}))
			} else {
				s.expire()
			}
			back := bid("a", 1, 2)
			back.Epoch, back.Held = a.Epoch(), held
			if got := s.acquire(back); len(got.Kept)+len(got.Recovered) != 0 {
				s.Errorf("kept %v, recovered %v; want none: it came back to the other", got.Kept, got.Recovered)
			}
			s.row(1, "pending 1 0 0")
		})
	}
}

// CR09: the row's own max_attempts decides when a process died with this job alone.
func TestADeathWithOneJobCanMakeItDead(t *testing.T) {
	s := newSite(t)
	for _, c := range []struct {
		attempts, maximum int
		want              string
	}{{1, 1, "dead 1 0 0"}, {1, 2, "pending 1 0 0"}, {2, 2, "dead 2 0 0"}, {5, 3, "dead 5 0 0"}} {
		s.each(fmt.Sprintf("attempt %d of %d", c.attempts, c.maximum), func(s *site) {
			s.exec(`insert into jobs (queue, name, state, epoch, attempts, max_attempts)
				values ('q', 'Do', 'running', 3, $1, $2)`, c.attempts, c.maximum)
			s.acquire(bid("a", 1, 1))
			s.row(1, c.want)
		})
	}
}

func TestADeathInCompanyMakesNoJobDead(t *testing.T) {
	s := newSite(t)
	s.insert(2)
	s.exec(`update jobs set max_attempts = 1`)
	s.claim(s.acquire(bid("a", 1, 1)), 2)
	s.acquire(bid("a", 2, 1))
	s.row(1, "pending 1 0 0")
	s.row(2, "pending 1 0 0")
}

// CR10, CR13: what is running comes back whatever else its row says; what is not is never touched.
func TestOnlyRunningRowsAreRecoveredAndAllOfThem(t *testing.T) {
	s := newSite(t)
	for _, row := range []string{
		`null, 'x'`, `now() - interval '1 h', null`, `null, null`, `'infinity', 'x'`, `now() + interval '1 day', 'x'`,
	} {
		s.exec(`insert into jobs (queue, name, state, epoch, attempts, locked_at, locked_by)
			values ('q', 'Do', 'running', 77, 1, ` + row + `)`)
	}
	s.exec(`insert into jobs (queue, name, state, attempts) values ('q', 'Do', 'done', 1), ('q', 'Do', 'dead', 1)`)
	s.exec(`insert into jobs (queue, name, state, epoch) values ('other', 'Do', 'running', 77)`)
	still := `select string_agg(j::text, E'\n' order by id) from jobs j where id > 5`
	before := column(t, s.look, still)
	a := s.acquire(bid("a", 1, 1))
	s.is("5", `select count(*) from jobs where queue = 'q' and state = 'pending'`)
	s.exec(`update jobs set state = 'running', epoch = 78 where id = 1`) // by hand, while the queue is held
	s.exec(`update jobs set state = 'running', epoch = $1 where id = 2`, a.Epoch())
	if swept, err := a.Sweep(ctx, nil, bid("a", 1, 1).Backoff); len(swept) != 2 || err != nil {
		t.Errorf("swept %v, %v; want jobs 1 and 2", swept, err)
	}
	s.is("0", `select count(*) from jobs where queue = 'q' and state = 'running'`)
	s.is(before, still)
}
