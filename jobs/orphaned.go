package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Orphan is a queue with running jobs that may have nobody who works on it.
type Orphan struct {
	Queue  string
	Leased bool   // its lease has not run out: it may be taken only if the process of Holder is known to be gone
	Here   bool   // Holder is, or was, a process of the machine that was asked for
	Holder Holder // the last one; zero: the queue is free

	seen     Seen
	settings json.RawMessage
}

// Few rows are running, and they have an index of their own.
const orphansSQL = `
select r.queue, q.expires_at >= now() and q.supervisor is not null,
	q.host = $1 and q.boot_id = $2 and q.pid_namespace = $3 and $2 <> '' and $3 <> '',
	coalesce(q.supervisor, ''), coalesce(q.n, 0), coalesce(q.c, 0), coalesce(q.host, ''), coalesce(q.boot_id, ''),
	coalesce(q.pid_namespace, ''), coalesce(q.pid, 0), coalesce(q.process_start, 0),
	coalesce(q.epoch, 0), coalesce(q.expires_at::text, ''), coalesce(q.settings::text, '{}')
from (
	select distinct queue
	from {jobs}
	where state = 'running'
) r
left join {queues} q on q.queue = r.queue
where q.supervisor is null or q.expires_at < now() or (q.host = $1 and q.boot_id = $2 and q.pid_namespace = $3)
order by r.queue`

// Orphans returns the queues with running jobs that are free or whose lease has run out, and those whose holder was a
// process of the same machine as here.
func (s Schema) Orphans(ctx context.Context, conn *pgx.Conn, here Holder) ([]Orphan, error) {
	rows, err := conn.Query(ctx, s.sql(orphansSQL), here.Host, here.BootID, here.PIDNamespace)
	if err != nil {
		return nil, fmt.Errorf("find queues nobody serves: %w", err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (o Orphan, err error) {
		var leased, same *bool // null: there is no row
		h := &o.Holder
		err = row.Scan(&o.Queue, &leased, &same, &h.Supervisor, &h.N, &h.C, &h.Host, &h.BootID, &h.PIDNamespace, &h.PID,
			&h.ProcessStart, &o.seen.Epoch, &o.seen.ExpiresAt, &o.settings)
		o.Leased, o.Here = leased != nil && *leased, same != nil && *same
		return o, err
	})
	if err != nil {
		return nil, fmt.Errorf("find queues nobody serves: %w", err)
	}
	return all, nil
}

// Sweep brings back what was left running in a queue nobody serves, and returns what it ended. It acquires the queue
// and releases it in one transaction: nobody ever sees the bid's holder, and if this process dies in between nothing
// has happened. The rate of a free queue stays as it is; that of one taken from the dead starts empty. If the queue
// has got a living holder meanwhile, the error is a *HeldError and nothing changes.
func (s Schema) Sweep(ctx context.Context, conn *pgx.Conn, o Orphan, bid Bid) ([]Ended, error) {
	if o.Leased {
		bid.Free = &o.seen
	}
	bid.Settings = o.settings // of the last holder: a sweep has none
	var recovered []Ended
	// Read committed: as for Acquire.
	err := pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		a, err := s.acquire(ctx, tx, o.Queue, bid)
		if err != nil {
			return err
		}
		a.conn, recovered = conn, a.Recovered
		return a.giveBack(ctx)
	})
	var held *HeldError
	if errors.As(err, &held) {
		return nil, held
	}
	if err != nil {
		return nil, fmt.Errorf("sweep queue %s: %w", o.Queue, err)
	}
	return recovered, nil
}

// CountedMost is where Unserved stops counting.
const CountedMost = 1000

// Walks from queue to queue by index: a backlog of millions costs as much as one job.
const unservedSQL = `
with recursive waiting(queue) as (
	(
		select queue::text
		from {jobs}
		where state = 'pending'
		order by queue
		limit 1
	)
	union all
	select (
		select j.queue::text
		from {jobs} j
		where j.state = 'pending' and j.queue > w.queue
		order by j.queue
		limit 1
	)
	from waiting w
	where w.queue is not null
), counted as (
	select w.queue, (
		select count(*)
		from (
			select
			from {jobs} j
			where j.state = 'pending' and j.queue = w.queue and j.run_at <= now()
			limit $2
		) due
	) as due
	from waiting w
	where w.queue is not null and w.queue <> all($1::text[])
)
select queue, due
from counted
where due > 0`

// Unserved counts the due jobs of each queue that has any and is not in served. CountedMost+1 stands for more than
// CountedMost.
func (s Schema) Unserved(ctx context.Context, conn *pgx.Conn, served []string) (map[string]int64, error) {
	counts := map[string]int64{}
	rows, err := conn.Query(ctx, s.sql(unservedSQL), append([]string{}, served...), CountedMost+1)
	if err != nil {
		return nil, fmt.Errorf("count due jobs without a worker: %w", err)
	}
	var queue string
	var due int64
	_, err = pgx.ForEachRow(rows, []any{&queue, &due}, func() error {
		counts[queue] = due
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("count due jobs without a worker: %w", err)
	}
	return counts, nil
}
