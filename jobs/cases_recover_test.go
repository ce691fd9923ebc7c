package jobs_test

import (
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"queuekeeper/internal/testdb"
	"queuekeeper/jobs"
)

// The sweep has found the row stale and comes while it is being changed. What it was before does not count, at whatever
// moment the change becomes known.
func TestRowThatChangesDuringASweepIsLeftAsItIs(t *testing.T) {
	const rounds = 15
	s := newSite(t)
	for name, change := range map[string]string{
		"it is done": `update jobs set state = 'done', epoch = null, locked_at = null, locked_by = null`,
		"another claims it": `
			with taken as (
				update queues
				set epoch = 2, supervisor = 'b', n = 1, c = 1, host = 'web-b', expires_at = now() + interval '30 s'
				returning epoch)
			update jobs set epoch = taken.epoch, attempts = 2, locked_at = now(), locked_by = 'web-b/1' from taken`,
	} {
		s.each(name, func(s *site) {
			changer, sweeper := testdb.Connect(s.T, s.url), s.worker()
			for range rounds {
				s.exec(`truncate jobs, queues restart identity`)
				s.exec(`insert into jobs (queue, name, state, epoch, attempts, locked_at, locked_by)
					values ('q', 'Do', 'running', 1, 1, now() - interval '1 h', 'web-a/1')`)
				s.exec(`insert into queues (queue, epoch) values ('q', 1)`)
				o := s.orphan()
				tx, err := changer.Begin(ctx)
				finish(s.T, err)
				_, err = tx.Exec(ctx, change)
				finish(s.T, err)
				var want string
				finish(s.T, tx.QueryRow(ctx, `select jobs::text from jobs`).Scan(&want))

				swept := make(chan error, 1)
				go func() {
					ended, err := jobs.Schema("").Sweep(ctx, sweeper, o, steward("s"))
					if len(ended) > 0 {
						s.Errorf("swept %v, want none", ended)
					}
					swept <- err
				}()
				finish(s.T, tx.Commit(ctx))
				if err := <-swept; err != nil && !isHeld(err) {
					s.Errorf("sweep: %v, want nil or a HeldError", err)
				}
				s.is(want, `select jobs::text from jobs`)
			}
		})
	}
}

func atOnce(int) time.Duration { return 0 }

// Left running together, with one attempt used up here and there. Together none of them dies; alone each shows what
// it is.
func TestStaleJobsAreJudgedByTheirOwnLimitsOnceAlone(t *testing.T) {
	s := newSite(t)
	s.exec(`insert into jobs (queue, name, state, epoch, attempts, max_attempts, run_at)
		select 'q', 'Do', 'running', 3, attempts, most, now() - interval '1 h'
		from (values (1, 1), (1, 2), (2, 2), (5, 3)) as v(attempts, most)`)
	b := bid("a", 1, 1)
	b.Backoff = atOnce
	a := s.acquire(b)
	for id, want := range map[int64]string{1: "pending 1 0 0", 2: "pending 1 0 0", 3: "pending 2 0 0", 4: "pending 5 0 0"} {
		s.row(id, want)
	}
	second := s.claim(a, 9)
	same(t, "claimed in company", ids(second), []int64{2})
	s.end(a, jobs.Ended{Ref: second[0].Ref(), Kind: jobs.KindDone})
	for n, id := range []int64{1, 3, 4} {
		same(t, "claimed alone", ids(s.step(a, jobs.Step{Claim: 1, Suspect: true}).Claimed), []int64{id})
		b = bid("a", n+2, 1) // the process has died of it
		b.Backoff = atOnce
		a = s.acquire(b)
	}
	for id, want := range map[int64]string{1: "dead 2 0 0", 2: "done 2 0 0", 3: "dead 3 0 0", 4: "dead 6 0 0"} {
		s.row(id, want)
	}
}

// What other programs may leave behind cannot be stored here: a row that is not running has no lock, and one that is
// has an epoch.
func TestRowsHalfLockedAreRefusedAtOnce(t *testing.T) {
	s := newSite(t)
	for _, c := range []struct{ row, want string }{
		{`'done', null, now() - interval '1 h', 'other/9'`, "only_a_running_job_is_locked"},
		{`'dead', null, now() - interval '1 h', 'other/9'`, "only_a_running_job_is_locked"},
		{`'running', null, null, 'x'`, "running_job_has_epoch"},
		{`'running', null, now() - interval '1 h', null`, "running_job_has_epoch"},
		{`'running', null, null, null`, "running_job_has_epoch"},
		{`'running', null, 'infinity', 'x'`, "running_job_has_epoch"},
		{`'running', null, now() + interval '1 day', 'x'`, "running_job_has_epoch"},
	} {
		_, err := s.look.Exec(ctx, `insert into jobs (queue, name, state, epoch, locked_at, locked_by) values ('q', 'Do', `+c.row+`)`)
		var pg *pgconn.PgError
		if !errors.As(err, &pg) || pg.ConstraintName != c.want {
			t.Errorf("insert of (%s): got %v, want constraint %s", c.row, err, c.want)
		}
	}
}

// What has ended is nobody's any more, and nothing says that it ever was somebody's.
func TestOutcomesStayThroughThreeTakeOvers(t *testing.T) {
	s := newSite(t)
	s.insert(2)
	a := s.acquire(bid("a", 1, 1))
	claimed := s.claim(a, 2)
	s.end(a, jobs.Ended{Ref: claimed[0].Ref(), Kind: jobs.KindDone})
	s.end(a, jobs.Ended{Ref: claimed[1].Ref(), Kind: jobs.KindDead, Error: "no luck"})
	const rows = `select string_agg(j::text, E'\n' order by id) from jobs j`
	before := column(t, s.look, rows)
	for n := range 3 {
		a = s.acquire(bid("a", n+2, 1))
		if swept, err := a.Sweep(ctx, nil, bid("a", 1, 1).Backoff); len(a.Recovered)+len(swept) > 0 || err != nil {
			t.Errorf("recovered %v, swept %v, %v; want none", a.Recovered, swept, err)
		}
	}
	s.is(before, rows)
	s.is("0", `select count(*) from jobs where num_nonnulls(epoch, locked_at, locked_by) > 0`)
}
