package jobs

import (
	"context"
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
}

// Reply is what Postgres answered to a Step.
type Reply struct {
	Paused   time.Duration // until claims are allowed again; 0: they are
	Recorded []int64       // the outcomes that are in; the rest is to be sent again, or gone
	Gone     []int64       // of Held: cancelled, deleted, recovered by another
	Claimed  []Claimed     // oldest first
	Due      time.Duration // until the next job is due, if fewer came than asked; -1: none waits
	// SuspectDue is the time until the next suspect is due; -1: none waits.
	SuspectDue time.Duration
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
	q.queueRenew(batch, s)
	if len(s.Ended) > 0 {
		q.queueRecord(batch, s.Ended)
	}
	if len(s.Held) > 0 {
		q.queueGone(batch, s.Held)
	}
	if s.Claim > 0 {
		q.queueClaim(batch, s)
	}

	results := q.conn.SendBatch(ctx, batch)
	// Close commits or fails what the reads below did not get to.
	defer func() {
		if closed := results.Close(); err == nil {
			err = closed
		}
	}()
	held, err := readRenew(results, &reply)
	if err != nil {
		return Reply{}, err
	}
	if !held {
		return Reply{}, ErrLeaseLost
	}
	if len(s.Ended) > 0 {
		if reply.Recorded, err = readIDs(results); err != nil {
			return Reply{}, fmt.Errorf("record: %w", err)
		}
	}
	if len(s.Held) > 0 {
		if reply.Gone, err = readIDs(results); err != nil {
			return Reply{}, fmt.Errorf("ask for gone jobs: %w", err)
		}
	}
	if s.Claim > 0 {
		if err = q.readClaim(results, &reply, s.Suspect); err != nil {
			return Reply{}, fmt.Errorf("claim: %w", err)
		}
	}
	return reply, nil
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

func (q *Queue) queueRenew(b *pgx.Batch, s Step) {
	b.Queue(q.sql(renewSQL), q.name, q.epoch, q.holder, seconds(s.EmptyFor), s.Starts, seconds(s.Pause), s.Why)
}

func readRenew(results pgx.BatchResults, reply *Reply) (held bool, err error) {
	rows, err := results.Query()
	if err != nil {
		return false, fmt.Errorf("renew: %w", err)
	}
	paused, err := pgx.CollectRows(rows, pgx.RowTo[float64])
	if err != nil {
		return false, fmt.Errorf("renew: %w", err)
	}
	if len(paused) == 0 {
		return false, nil
	}
	reply.Paused = duration(paused[0])
	return true, nil
}

const goneSQL = `
select h.id
from unnest($1::bigint[], $2::int[]) as h(id, attempt)
where not exists (
	select from {jobs} j
	where j.id = h.id and j.attempts = h.attempt and j.state = 'running' and j.epoch = $3)`

func (q *Queue) queueGone(b *pgx.Batch, held []Ref) {
	ids, attempts := split(held)
	b.Queue(q.sql(goneSQL), ids, attempts, q.epoch)
}

func split(refs []Ref) (ids []int64, attempts []int) {
	for _, r := range refs {
		ids, attempts = append(ids, r.ID), append(attempts, r.Attempt)
	}
	return ids, attempts
}

func readIDs(results pgx.BatchResults) ([]int64, error) {
	rows, err := results.Query()
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[int64])
}
