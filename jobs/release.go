package jobs

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

const releaseSQL = `
with released as (
	update {queues}
	set supervisor = null, n = null, c = null, host = null, boot_id = null, pid_namespace = null, pid = null,
		process_start = null, expires_at = '-infinity',
		lanes_empty_at = coalesce(now() - $4::float8 * interval '1 s', lanes_empty_at)
	where queue = $1 and epoch = $2 and holder = $3
	returning queue
)
select pg_notify('jobs_' || queue, 'lease') is not null
from released`

const keepTurnsSQL = `
insert into {lanes} (queue, lane, empty_at)
select $1::text, t.lane, now() - t.ago * interval '1 s'
from unnest($4::text[], $5::float8[]) as t(lane, ago)
where exists (select from {queues} where queue = $1 and epoch = $2 and holder = $3)
on conflict (queue, lane) do update
set empty_at = excluded.empty_at`

// Release records the last outcomes and gives the queue back with the exact state of its rates; whoever stands by
// is told at once. Of last, what a Step would claim is left out. If another holds the queue already, nothing changes and
// the error is ErrLeaseLost.
func (q *Queue) Release(ctx context.Context, last Step, lanes LaneRates) error {
	batch := &pgx.Batch{}
	q.tell(batch, last, new(Reply))
	if len(lanes.Turns) > 0 {
		names, ago := make([]string, 0, len(lanes.Turns)), make([]float64, 0, len(lanes.Turns))
		for lane, since := range lanes.Turns {
			names, ago = append(names, lane), append(ago, seconds(since))
		}
		batch.Queue(q.sql(keepTurnsSQL), q.name, q.epoch, q.holder, names, ago)
	}
	return q.release(ctx, batch, seconds(lanes.EmptyFor))
}

// giveBack releases the queue with the rates as the acquire left them.
func (q *Queue) giveBack(ctx context.Context) error { return q.release(ctx, &pgx.Batch{}, nil) }

// release sends a batch, and with it the queue back. lanesEmpty is how long ago the bucket of every lane was empty; nil:
// as it stands there.
func (q *Queue) release(ctx context.Context, batch *pgx.Batch, lanesEmpty any) error {
	q.queueTrue(batch, releaseSQL, q.name, q.epoch, q.holder, lanesEmpty)
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
