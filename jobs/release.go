package jobs

import (
	"context"
	"errors"
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
	// The row of the queue first, as everywhere: an acquire that passed between the outcomes and the release would
	// find the rows of the outcomes locked and leave them.
	q.queueTrue(batch, holdSQL, q.name, q.epoch, q.holder)
	if len(ended) > 0 {
		q.record(batch, ended, new([]int64))
	}
	q.queueTrue(batch, releaseSQL, q.name, q.epoch, q.holder, seconds(emptyFor), starts)
	if err := q.conn.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("release queue %s: %w", q.name, err)
	}
	return nil
}

// queueTrue adds a statement that answers with a row if the queue is ours.
func (q *Queue) queueTrue(b *pgx.Batch, statement string, args ...any) {
	b.Queue(q.sql(statement), args...).QueryRow(func(row pgx.Row) error {
		var ours bool
		err := row.Scan(&ours)
		if errors.Is(err, pgx.ErrNoRows) {
			return ErrLeaseLost
		}
		return err
	})
}
