package child

import (
	"context"
	"errors"
	"testing"
	"time"

	"queuekeeper/internal/testdb"
	"queuekeeper/jobs"
)

// A command has kill_after to end. Meanwhile new jobs are told with the cancel: the claim comes at once.
func TestACancelledJobHoldsItsStrictLaneUntilItHasEnded(t *testing.T) {
	r := newRig(t)
	r.worker.Order, r.worker.Concurrency = "strict", 4
	r.set.Lease, r.worker.PollInterval = time.Hour, time.Hour
	var s starts
	r.handle("quick", s.quick)
	told, end := make(chan struct{}), make(chan struct{})
	r.handle("slow", func(ctx context.Context, j jobs.Job) error {
		s.note(ctx, j)
		<-ctx.Done()
		close(told)
		<-end
		return nil
	})
	r.lane("a", "slow", 1)
	r.lane("a", "quick", 1)
	r.start()
	s.reach(r, "a", 1)
	tx, err := testdb.Connect(t, r.url).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := jobs.Schema("").Cancel(t.Context(), tx, 1); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `insert into jobs (queue, name, lane) values ('q', 'quick', 'a'), ('q', 'quick', 'b')`); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.reach(r, "b", 1) // a claim has come since
	<-told
	r.lane("b", "quick", 1)
	s.reach(r, "b", 2) // and another
	if got := s.count("a"); got != 1 {
		t.Errorf("starts in the lane of the cancelled job, which has not ended: got %d, want its own alone", got)
	}
	close(end)
	s.reach(r, "a", 3)
	inOrder(t, "a", s.of("a"))
	r.until(`select string_agg(state, ' ' order by id) = 'dead done done' from jobs where id <= 3`)
}

// The poll floor and the retry are an hour away: only the word of the operator lets the next one go on.
func TestALaneGoesOnOnceTheRetryThatHeldItUpIsGone(t *testing.T) {
	for name, remove := range map[string]func(context.Context, jobs.DB) ([]jobs.Change, error){
		"cancelled": func(ctx context.Context, db jobs.DB) ([]jobs.Change, error) {
			return jobs.Schema("").Cancel(ctx, db, 1)
		},
		"deleted": func(ctx context.Context, db jobs.DB) ([]jobs.Change, error) {
			return jobs.Schema("").Delete(ctx, db, 1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.worker.Order, r.worker.Concurrency = "strict", 2
			r.set.Lease, r.worker.PollInterval = time.Hour, time.Hour
			r.set.Times.RetryBase, r.set.Times.RetryMax = time.Hour, time.Hour
			r.countSteps()
			var s starts
			r.handle("quick", s.quick)
			r.handle("fails", func(context.Context, jobs.Job) error { return errors.New("no") })
			r.lane("a", "fails", 1)
			r.lane("a", "quick", 1)
			r.start()
			r.until(`select state = 'pending' and attempts = 1 from jobs where id = 1`)
			r.rests()
			if got := s.count("a"); got != 0 {
				t.Errorf("starts behind the retry: got %d, want none", got)
			}
			if _, err := remove(t.Context(), r.conn); err != nil {
				t.Fatal(err)
			}
			s.reach(r, "a", 1)
		})
	}
}
