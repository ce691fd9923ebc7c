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
	// The row of the queue first, as everywhere: an acquire that passed between the outcomes and the release would
	// find the rows of the outcomes locked and leave them.
	batch.Queue(q.sql(holdSQL), q.name, q.epoch, q.holder)
	if len(ended) > 0 {
		q.queueRecord(batch, ended)
	}
	batch.Queue(q.sql(releaseSQL), q.name, q.epoch, q.holder, seconds(emptyFor), starts)
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
	if held, err := readTrue(results); err != nil || !held {
		return false, err
	}
	if records {
		if _, err := readIDs(results); err != nil {
			return false, fmt.Errorf("record: %w", err)
		}
	}
	return readTrue(results)
}

// readTrue reports whether a statement that answers true for a row found one.
func readTrue(results pgx.BatchResults) (bool, error) {
	rows, err := results.Query()
	if err != nil {
		return false, err
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[bool])
	return len(found) > 0, err
}
