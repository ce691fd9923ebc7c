package jobs

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// What keeps an operator's change from one job. They are inside Change.Err.
var (
	ErrNotFound = errors.New("no such job")
	ErrState    = errors.New("not in this state")
	ErrKeyTaken = errors.New("its unique key is taken")
)

// refusal says in words of its own what one of the errors above means for this job.
type refusal struct {
	words string
	is    error
}

func (r refusal) Error() string { return r.words }
func (r refusal) Unwrap() error { return r.is }

// Change is what became of one job that an operator wanted changed.
type Change struct {
	ID  int64
	Was State // before the change; "": there is no such job
	Err error // nil: changed. Else ErrNotFound, ErrState or ErrKeyTaken with the reason in words
}

// changeRow is what the statements below say of each job they found.
type changeRow struct {
	id      int64
	was     State
	changed bool
	rival   *int64 // the pending or running job that has the same unique key
	state   *State // of the rival
}

// A dead job with a unique key comes back only if no pending or running job has the key, and of several dead ones
// with the same key the newest. Its attempts stay, but no longer count.
const requeueSQL = `
with asked as (
	select id, queue, unique_key, state
	from {jobs}
	where id = any($1)
	order by id
	for update
), requeued as (
	update {jobs} j
	set state = 'pending', excused = j.attempts, throttled = 0, requeues = j.requeues + 1, run_at = now(),
		finished_at = null,
		epoch = null, locked_at = null, locked_by = null -- null already, but the snapshot may show it still running
	from asked a
	where j.id = a.id and a.state = 'dead'
		and not exists (
			select from {jobs} k
			where k.queue = a.queue and k.unique_key = a.unique_key and k.state in ('pending', 'running')
				and k.id <> a.id) -- for the same reason
		and not exists (
			select from asked b
			where b.queue = a.queue and b.unique_key = a.unique_key and b.state = 'dead' and b.id > a.id)
	returning j.id, j.queue, j.tableoid
), notified as (
	select pg_notify('jobs_' || q.queue, n.nspname) -- as the insert trigger does
	from (select distinct queue, tableoid from requeued) q
	join pg_class c on c.oid = q.tableoid
	join pg_namespace n on n.oid = c.relnamespace
)
select a.id, a.state, r.id is not null, coalesce(k.id, b.id), coalesce(k.state, 'pending'),
	(select count(*) from notified) -- a select in a with runs only if it is read
from asked a
left join requeued r on r.id = a.id
left join {jobs} k on k.queue = a.queue and k.unique_key = a.unique_key and k.state in ('pending', 'running')
	and k.id <> a.id
left join lateral (
	select max(b.id) as id
	from asked b
	where b.queue = a.queue and b.unique_key = a.unique_key and b.state = 'dead' and b.id > a.id) b on true`

// Requeue gives dead jobs a new life: pending and due now, with all attempts before them; last_error stays. Each id
// gets its Change, in the order of ids; one that is refused does not keep the others from being changed. It repeats
// itself when a job with the same unique key is stored meanwhile, which it cannot do inside a transaction of the
// caller.
func (s Schema) Requeue(ctx context.Context, db DB, ids ...int64) ([]Change, error) {
	var changes []Change
	var err error
	for range maxTries {
		if changes, err = s.change(ctx, db, requeueSQL, ids, notDead); !isKeyTaken(err) {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("requeue: %w", err)
	}
	return changes, nil
}

func notDead(r changeRow) error {
	switch {
	case r.was != Dead:
		return refusal{fmt.Sprintf("it is %s, and only a dead job is requeued", r.was), ErrState}
	case r.rival != nil:
		return refusal{fmt.Sprintf("job %d with the same key is %s", *r.rival, *r.state), ErrKeyTaken}
	}
	return refusal{"a trigger on the table kept it from being changed", ErrState}
}

func isKeyTaken(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "23505"
}

const deadSQL = `
select id
from {jobs}
where queue = $1 and state = 'dead' and id > $2
order by id
limit 1000`

// RequeueDead requeues all dead jobs of a queue, a thousand at a time. What was done before an error stays done and
// is in the changes.
func (s Schema) RequeueDead(ctx context.Context, db DB, queue string) ([]Change, error) {
	if err := CheckQueue(queue); err != nil {
		return nil, fmt.Errorf("requeue: %w", invalid{err})
	}
	var all []Change
	for last := int64(math.MinInt64); ; {
		rows, err := db.Query(ctx, s.sql(deadSQL), queue, last)
		if err != nil {
			return all, fmt.Errorf("requeue: %w", err)
		}
		ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
		if err != nil {
			return all, fmt.Errorf("requeue: %w", err)
		}
		if len(ids) == 0 {
			return all, nil
		}
		changes, err := s.Requeue(ctx, db, ids...)
		if err != nil {
			return all, err
		}
		all = append(all, changes...)
		last = ids[len(ids)-1]
	}
}

// The handler of a running job is told by the notification, and its outcome finds the row no longer its own.
// A cancelled job may have started since the last Step of its worker, which claimed it: if that dies now, this is where
// the start is known.
const cancelSQL = `
with asked as (
	select id, queue, state, locked_at
	from {jobs}
	where id = any($1)
	order by id
	for update
), cancelled as (
	update {jobs} j
	set state = 'dead', last_error = 'cancelled', finished_at = now(), epoch = null, locked_at = null,
		locked_by = null
	from asked a
	where j.id = a.id and a.state in ('pending', 'running')
	returning j.id, a.queue, a.state as was, a.locked_at
), counted as (
	update {queues} q
	set waiting = q.waiting + c.n
	from (
		select queue, locked_at, count(*) as n
		from cancelled
		where was = 'running'
		group by queue, locked_at
	) c
	where q.queue = c.queue and q.settled_at = c.locked_at
), notified as (
	-- Of a pending job too: in strict order others may have waited for it.
	select pg_notify('jobs_' || queue, 'cancel')
	from (select distinct queue from cancelled) q
)
select a.id, a.state, c.id is not null, null::bigint, null::text, (select count(*) from notified)
from asked a
left join cancelled c on c.id = a.id`

// Cancel makes pending and running jobs dead, with last_error "cancelled". Where Change.Was is Running, the handler
// was still executing: its context ends within moments, and whatever it answers is dropped.
func (s Schema) Cancel(ctx context.Context, db DB, ids ...int64) ([]Change, error) {
	changes, err := s.change(ctx, db, cancelSQL, ids, func(r changeRow) error {
		return refusal{fmt.Sprintf("it is %s already", r.was), ErrState}
	})
	if err != nil {
		return nil, fmt.Errorf("cancel: %w", err)
	}
	return changes, nil
}

const deleteSQL = `
with asked as (
	select id, queue, state
	from {jobs}
	where id = any($1)
	order by id
	for update
), deleted as (
	delete from {jobs} j
	using asked a
	where j.id = a.id and a.state <> 'running'
	returning j.id, a.queue, a.state
), notified as (
	select pg_notify('jobs_' || queue, 'cancel')
	from (select distinct queue from deleted where state = 'pending') q
)
select a.id, a.state, d.id is not null, null::bigint, null::text, (select count(*) from notified)
from asked a
left join deleted d on d.id = a.id`

// Delete removes the rows of jobs that are not running.
func (s Schema) Delete(ctx context.Context, db DB, ids ...int64) ([]Change, error) {
	changes, err := s.change(ctx, db, deleteSQL, ids, func(r changeRow) error {
		return refusal{fmt.Sprintf("it is %s; cancel it first", r.was), ErrState}
	})
	if err != nil {
		return nil, fmt.Errorf("delete: %w", err)
	}
	return changes, nil
}

// change runs one of the statements above and says for each id what it did; refuse words why it did not.
func (s Schema) change(ctx context.Context, db DB, sql string, ids []int64, refuse func(changeRow) error,
) ([]Change, error) {
	rows, err := db.Query(ctx, s.sql(sql), ids)
	if err != nil {
		return nil, err
	}
	found := map[int64]changeRow{}
	var r changeRow
	var notified int64
	_, err = pgx.ForEachRow(rows, []any{&r.id, &r.was, &r.changed, &r.rival, &r.state, &notified}, func() error {
		found[r.id] = r
		return nil
	})
	if err != nil {
		return nil, err
	}
	changes := make([]Change, len(ids))
	for i, id := range ids {
		r, ok := found[id]
		changes[i] = Change{ID: id, Was: r.was}
		switch {
		case !ok:
			changes[i].Err = ErrNotFound
		case !r.changed:
			changes[i].Err = refuse(r)
		}
	}
	return changes, nil
}
