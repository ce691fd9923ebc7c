package migrations_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"queuekeeper/internal/testdb"
	"queuekeeper/jobs"
)

// before is a child of the version before, as far as the database sees it: a connection that has prepared the
// statements of that version and goes on with them. They are what that version sent and never change.
type before struct{ conn *pgx.Conn }

var beforeSQL = map[string]string{
	"take": `
update queues
set epoch = epoch + 1, supervisor = 's', n = 1, c = 1, host = 'web', pid = 7, ttl = $2::float8 * interval '1 s',
	expires_at = now() + $2::float8 * interval '1 s',
	empty_at = case when supervisor is null then empty_at else now() end, settings = '{}'
where queue = $1
returning epoch`,
	"renew": `
update queues
set expires_at = now() + ttl,
	empty_at = now() - $3::float8 * interval '1 s',
	starts = starts + $4,
	paused_until = case when $5::float8 > 0 then greatest(paused_until, now() + $5::float8 * interval '1 s')
	                    else paused_until end,
	pause_reason = case when $5::float8 > 0 then $6 else pause_reason end
where queue = $1 and epoch = $2 and holder = 's/1/1'
returning extract(epoch from greatest(least(paused_until, now() + interval '1 day'), now()) - now())::float8`,
	"record": `
update jobs j
set state = case when o.kind = 'done' then 'done'
	             when o.kind = 'dead' or (o.kind = 'fail' and j.attempts - j.excused >= j.max_attempts) then 'dead'
	             else 'pending' end,
	run_at = case when o.delay > 0 then now() + o.delay * interval '1 s' else j.run_at end,
	started_at = j.locked_at, finished_at = now(), epoch = null, locked_at = null, locked_by = null
from (
	select r.ctid as place, o.*
	from unnest($3::bigint[], $4::int[], $5::text[], $6::float8[]) as o(id, attempt, kind, delay)
	join jobs r on r.id = o.id
	where r.attempts = o.attempt and r.epoch = $2
		and exists (select from queues where queue = $1 and epoch = $2 and holder = 's/1/1')
	for no key update of r skip locked
) o
where j.ctid = o.place
returning j.id`,
	"claim": `
update jobs j
set state = 'running', attempts = j.attempts + 1, epoch = $2, locked_at = now(), locked_by = 'web/7',
	max_attempts = coalesce(j.max_attempts, 20)
where j.ctid = any(array(
	select ctid
	from jobs
	where queue = $1 and state = 'pending' and (attempts - excused >= max_attempts) is not true and run_at <= now()
		and exists (select from queues where queue = $1 and epoch = $2 and holder = 's/1/1' and paused_until <= now())
	order by run_at, id
	limit $3
	for update skip locked))
returning j.id`,
	"release": `
update queues
set supervisor = null, n = null, c = null, host = null, boot_id = null, pid_namespace = null, pid = null,
	process_start = null, expires_at = '-infinity', empty_at = now() - $3::float8 * interval '1 s', starts = starts + $4
where queue = $1 and epoch = $2 and holder = 's/1/1'
returning true`,
}

// holdAsBefore has a child of the version before hold a queue.
func holdAsBefore(t *testing.T, url, queue string) *before {
	t.Helper()
	b := &before{testdb.Connect(t, url)}
	if err := jobs.PrepareSession(t.Context(), b.conn, "worker", 30*time.Second); err != nil {
		t.Fatal(err)
	}
	for name, sql := range beforeSQL {
		if _, err := b.conn.Prepare(t.Context(), name, sql); err != nil {
			t.Fatalf("prepare %s: %v", name, err)
		}
	}
	execute(t, b.conn, `insert into queues (queue) values ('`+queue+`') on conflict do nothing`)
	var epoch int64
	if err := b.conn.QueryRow(t.Context(), "take", queue, 30.0).Scan(&epoch); err != nil || epoch != 1 {
		t.Fatalf("take: got epoch %d (error %v), want 1", epoch, err)
	}
	return b
}

// step is a Step of that version: it renews, records job as done if it is not 0, and claims one.
func (b *before) step(ctx context.Context, queue string, job int64) (claimed int64, err error) {
	batch := &pgx.Batch{}
	var paused float64
	batch.Queue("renew", queue, int64(1), 60.0, 1, 0.0, "").QueryRow(func(row pgx.Row) error { return row.Scan(&paused) })
	if job != 0 {
		batch.Queue("record", queue, int64(1), []int64{job}, []int32{1}, []string{"done"}, []float64{0}).QueryRow(func(row pgx.Row) error {
			return row.Scan(&job)
		})
	}
	batch.Queue("claim", queue, int64(1), 1).QueryRow(func(row pgx.Row) error {
		if err := row.Scan(&claimed); !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		return nil // none is due
	})
	return claimed, b.conn.SendBatch(ctx, batch).Close()
}
