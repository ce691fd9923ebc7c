package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"queuekeeper/internal/testdb"
	"queuekeeper/jobs"
)

// site is a database with one queue, "q", and a connection that looks at it and stands for operators and producers.
type site struct {
	*testing.T
	url  string
	look *pgx.Conn
}

func newSite(t *testing.T) *site {
	url := testdb.New(t)
	return &site{t, url, testdb.Connect(t, url)}
}

// each runs a case as a subtest, from empty tables: that is quicker than a database for each.
func (s *site) each(name string, do func(s *site)) {
	s.exec(`truncate jobs, queues, lanes restart identity`)
	s.Run(name, func(t *testing.T) { do(&site{t, s.url, s.look}) })
}

// exec is an operator at work.
func (s *site) exec(sql string, args ...any) {
	s.Helper()
	exec(s.T, s.look, sql, args...)
}

// is compares a value of the database, as text.
func (s *site) is(want, sql string, args ...any) {
	s.Helper()
	if got := column(s.T, s.look, sql, args...); got != want {
		s.Errorf("%s %v = %s, want %s", sql, args, got, want)
	}
}

// row compares what matters of a job: state, attempts, excused, throttled.
func (s *site) row(id int64, want string) {
	s.Helper()
	got := column(s.T, s.look, `select concat_ws(' ', state, attempts, excused, throttled) from jobs where id = $1`, id)
	if got != want {
		s.Errorf("job %d = %s, want %s", id, got, want)
	}
}

// insert enqueues jobs that are due, in the order of their ids.
func (s *site) insert(count int) {
	s.Helper()
	s.exec(`insert into jobs (queue, name, run_at) select 'q', 'Do', now() - interval '1 h' from generate_series(1, $1)`, count)
}

// worker connects as a child does.
func (s *site) worker() *pgx.Conn {
	s.Helper()
	conn := testdb.Connect(s.T, s.url)
	finish(s.T, jobs.PrepareSession(context.Background(), conn, "worker", 30*time.Second))
	return conn
}

// bid is that of connection c of the n-th child of a supervisor. Its process has the number n.
func bid(supervisor string, n, c int) jobs.Bid {
	return jobs.Bid{
		Holder: jobs.Holder{Supervisor: supervisor, N: n, C: c, Host: "web-" + supervisor, BootID: "boot", PIDNamespace: "ns",
			PID: n, ProcessStart: 7},
		TTL:     30 * time.Second,
		Limits:  jobs.Limits{MaxAttempts: 20, ByName: map[string]int{"Twice": 2}},
		Backoff: func(counted int) time.Duration { return time.Duration(counted) * time.Minute },
	}
}

// acquire acquires the queue on a new connection.
func (s *site) acquire(b jobs.Bid) *jobs.Acquired {
	s.Helper()
	a, err := jobs.Schema("").Acquire(ctx, s.worker(), "q", b)
	if err != nil {
		s.Fatalf("acquire: %v", err)
	}
	return a
}

// refused is an acquire that must be refused.
func (s *site) refused(b jobs.Bid) *jobs.HeldError {
	s.Helper()
	var held *jobs.HeldError
	if _, err := jobs.Schema("").Acquire(ctx, s.worker(), "q", b); !errors.As(err, &held) {
		s.Fatalf("acquire by %s/%d/%d: %v, want a HeldError", b.Holder.Supervisor, b.Holder.N, b.Holder.C, err)
	}
	return held
}

func (s *site) step(a *jobs.Acquired, step jobs.Step) jobs.Reply {
	s.Helper()
	reply, err := a.Step(ctx, step)
	if err != nil {
		s.Fatalf("step: %v", err)
	}
	return reply
}

// claim claims so many jobs, at most.
func (s *site) claim(a *jobs.Acquired, n int) []jobs.Claimed {
	s.Helper()
	return s.step(a, jobs.Step{Claim: n}).Claimed
}

// end tells one outcome and wants it recorded.
func (s *site) end(a *jobs.Acquired, e jobs.Ended) {
	s.Helper()
	if got := s.step(a, jobs.Step{Ended: []jobs.Ended{e}}).Recorded; len(got) != 1 {
		s.Errorf("recorded %v, want job %d", got, e.ID)
	}
}

// expire lets the lease run out.
func (s *site) expire() { s.exec(`update queues set expires_at = now() - interval '1 s'`) }

func ids(claimed []jobs.Claimed) (ids []int64) {
	for _, c := range claimed {
		ids = append(ids, c.ID)
	}
	return ids
}

func refs(claimed []jobs.Claimed) (refs []jobs.Ref) {
	for _, c := range claimed {
		refs = append(refs, c.Ref())
	}
	return refs
}

// same compares lists by what they print.
func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s = %v, want %v", what, got, want)
	}
}

// near compares a duration that the database's clock had a part in.
func near(t *testing.T, what string, got, want time.Duration) {
	t.Helper()
	if got > want+time.Second || got < want-20*time.Second {
		t.Errorf("%s = %v, want about %v", what, got, want)
	}
}
