package jobs

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

const releaseSQL = `
with released as (
	update {queues}
	set supervisor = null, n = null, c = null, host = null, boot_id = null, pid_namespace = null, pid = null,
		process_start = null, expires_at = '-infinity', empty_at = now() - $4::float8 * interval '1 s', starts = starts + $5
	where queue = $1 and epoch = $2 and holder = $3
	returning queue
)
select pg_notify('jobs_' || queue, 'lease') is not null
from released`

// Release records the last outcomes and gives the queue back with the exact state of its rate; whoever stands by
// is told at once. If another holds the queue already, nothing changes and the error is ErrLeaseLost.
func (q *Queue) Release(ctx context.Context, ended []Ended, emptyFor time.Duration, starts int) error {
	batch := &pgx.Batch{}
	if len(ended) > 0 {
		q.queueRecord(batch, ended)
	}
	batch.Queue(q.schema.sql(releaseSQL), q.name, q.epoch, q.holder, seconds(emptyFor), starts)
	released, err := q.sendRelease(ctx, batch, len(ended) > 0)
	if err == nil && !released {
		err = ErrLeaseLost
	}
	if err != nil {
		return fmt.Errorf("release queue %s: %w", q.name, err)
	}
	return nil
}

func (q *Queue) sendRelease(ctx context.Context, batch *pgx.Batch, records bool) (released bool, err error) {
	results := q.conn.SendBatch(ctx, batch)
	defer func() {
		if closed := results.Close(); err == nil {
			err = closed
		}
	}()
	if records {
		if _, err := readIDs(results); err != nil {
			return false, fmt.Errorf("record: %w", err)
		}
	}
	rows, err := results.Query()
	if err != nil {
		return false, err
	}
	told, err := pgx.CollectRows(rows, pgx.RowTo[bool])
	return len(told) > 0, err
}

const headSQL = `
select id
from {jobs}
where queue = $1 and state = 'pending' and run_at <= now() and id <> all($2::bigint[])
order by run_at, id
limit 1`

// Head is the job a claim of one would take; 0: none. It finds the job that Postgres refuses to let us claim.
func (q *Queue) Head(ctx context.Context, skip []int64) (int64, error) {
	if skip == nil {
		skip = []int64{}
	}
	rows, err := q.conn.Query(ctx, q.schema.sql(headSQL), q.name, skip)
	if err != nil {
		return 0, fmt.Errorf("find head of queue %s: %w", q.name, err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	return ids[0], nil
}
