package jobs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Step is everything a child has to say to Postgres at one moment.
type Step struct {
	EmptyFor time.Duration // since the rate's bucket was empty
	Starts   int           // handlers started since the last Step
	Pause    time.Duration // claim nothing for so long: 0 leaves a pause as it is
	Why      string        // the pause's reason
	Ended    []Ended
	Held     []Ref   // asked only when not empty: which of these are no longer ours
	Claim    int     // at most so many new jobs
	Suspect  bool    // of the suspects, and of nothing else: see Claimed
	Skip     []int64 // not these
	AskDue   bool    // say when the next jobs are due
}

// Reply is what Postgres answered to a Step.
type Reply struct {
	Paused   time.Duration // until claims are allowed again; 0: they are
	Recorded []int64       // the outcomes that are in; the rest is to be sent again, or gone
	Gone     []int64       // of Held: cancelled, deleted, recovered by another
	Claimed  []Claimed     // oldest first

	// Of AskDue: until the next job that is not due yet will be, and until the first suspect is; -1: none waits. At
	// most a day.
	Due, SuspectDue time.Duration
}

// Step renews the lease, records the ends of jobs and claims new ones, in one round trip and one commit. If
// another holds the queue, nothing changes and the error is ErrLeaseLost.
func (q *Queue) Step(ctx context.Context, s Step) (Reply, error) {
	reply, err := q.step(ctx, s)
	if err != nil {
		return Reply{}, fmt.Errorf("step queue %s: %w", q.name, err)
	}
	return reply, nil
}

func (q *Queue) step(ctx context.Context, s Step) (reply Reply, err error) {
	batch := &pgx.Batch{}
	q.renew(batch, s, &reply.Paused)
	if len(s.Ended) > 0 {
		q.record(batch, s.Ended, &reply.Recorded)
	}
	if len(s.Held) > 0 {
		q.findGone(batch, s.Held, &reply.Gone)
	}
	if s.Claim > 0 {
		q.claim(batch, s, &reply.Claimed)
	}
	if s.AskDue {
		q.askDue(batch, s, &reply)
	}
	return reply, q.conn.SendBatch(ctx, batch).Close()
}

// No row back: the lease is lost, and the statements behind this one change nothing either.
const renewSQL = `
update {queues}
set expires_at = now() + ttl,
	empty_at = now() - $4::float8 * interval '1 s',
	starts = starts + $5,
	paused_until = case when $6::float8 > 0 then greatest(paused_until, now() + $6::float8 * interval '1 s')
	                    else paused_until end,
	pause_reason = case when $6::float8 > 0 then $7 else pause_reason end
where queue = $1 and epoch = $2 and holder = $3
returning extract(epoch from greatest(least(paused_until, now() + interval '1 day'), now()) - now())::float8`

func (q *Queue) renew(b *pgx.Batch, s Step, paused *time.Duration) {
	args := []any{q.name, q.epoch, q.holder, seconds(s.EmptyFor), s.Starts, seconds(s.Pause), s.Why}
	b.Queue(q.sql(renewSQL), args...).QueryRow(func(row pgx.Row) error {
		var left float64
		err := row.Scan(&left)
		if errors.Is(err, pgx.ErrNoRows) {
			return ErrLeaseLost
		}
		if err != nil {
			return fmt.Errorf("renew: %w", err)
		}
		*paused = duration(left)
		return nil
	})
}

const goneSQL = `
select h.id
from unnest($1::bigint[], $2::int[]) as h(id, attempt)
where not exists (
	select from {jobs} j
	where j.id = h.id and j.attempts = h.attempt and j.state = 'running' and j.epoch = $3)`

func (q *Queue) findGone(b *pgx.Batch, held []Ref, gone *[]int64) {
	ids, attempts := split(held)
	b.Queue(q.sql(goneSQL), ids, attempts, q.epoch).Query(func(rows pgx.Rows) (err error) {
		if *gone, err = pgx.CollectRows(rows, pgx.RowTo[int64]); err != nil {
			return fmt.Errorf("find gone jobs: %w", err)
		}
		return nil
	})
}

func split(refs []Ref) (ids []int64, attempts []int) {
	for _, r := range refs {
		ids, attempts = append(ids, r.ID), append(attempts, r.Attempt)
	}
	return ids, attempts
}
