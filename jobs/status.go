package jobs

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// QueueStatus is how a queue is.
type QueueStatus struct {
	Queue            string
	Due              int64         // pending, and could start now
	Later            int64         // pending, for later
	Running          int64         // claimed; a job waits there for its turn for a moment
	Dead             int64         // kept with their errors
	DoneLastHour     int64         // ended well
	OldestDue        time.Duration // how long the oldest due job has waited; at most 100 days
	Holder           string        // host/pid of the child that works on the queue; "": nobody
	LeaseEnds        time.Duration // unless the holder renews it
	PausedFor        time.Duration // nothing starts until then; at most 100 days
	PauseHasNoEnd    bool          // the queue is paused until somebody resumes it
	PauseReason      string        // of the pause that holds; "": nobody said why
	LanesPaused      int64         // lanes that start nothing
	PausedLanes      []PausedLane  // which: the first MaxPausedLanes of them by name
	MaxJobsPerSecond float64       // what the last holder's file says; 0: no limit
	PerLane          float64       // what it says of each lane; 0: no limit
	Quotas           []string      // and of quotas, as "5000/1h"
	Concurrency      int           // what it says of that; 0: nobody has said
	MeanDuration     time.Duration // of the jobs done in the last hour, at most the newest 1000; 0: there are none

	// What the holder's supervisor said of its child or, of a queue without a holder, the last that said anything.
	Child        Child         // zero: nobody has said anything
	ChildHost    string        // where the child is, or was
	FailedReload string        // why that supervisor's last reload changed nothing; "": it did not fail
	SeenAgo      time.Duration // since it was said. A supervisor that lives says it every minute
}

// MaxPausedLanes is how many paused lanes a QueueStatus names: there may be thousands.
const MaxPausedLanes = 100

// PausedLane is a lane that starts nothing.
type PausedLane struct {
	Lane   string
	For    time.Duration // until it goes on; at most 100 days. -1: until somebody resumes it
	Reason string        // "": nobody said why
}

// greatest and least leave nulls out, and keep infinity from arithmetic. Counts of pending, running and dead rows and of
// the last hour: each has its index. Done rows are not counted, for there may be tens of millions.
const statusSQL = `
select coalesce(q.queue, c.queue), coalesce(c.due, 0), coalesce(c.later, 0), coalesce(c.running, 0), coalesce(c.dead, 0),
	(select count(*) from {jobs} j
		where j.queue = coalesce(q.queue, c.queue) and j.state = 'done' and j.finished_at > now() - interval '1 hour'),
	extract(epoch from now() - greatest(coalesce(c.oldest, now()), now() - interval '100 days'))::float8,
	case when q.supervisor is not null and q.expires_at > now() then concat(q.host, '/', q.pid) else '' end,
	extract(epoch from least(greatest(q.expires_at, now()), now() + interval '1 day') - now())::float8,
	extract(epoch from least(greatest(q.paused_until, now()), now() + interval '100 days') - now())::float8,
	coalesce(q.paused_until = 'infinity', false), case when q.paused_until > now() then coalesce(q.pause_reason, '') else '' end,
	coalesce(l.paused, 0), coalesce(f.lanes, '[]'),
	coalesce((q.settings ->> 'max_jobs_per_second')::float8, 0), coalesce((q.settings ->> 'max_jobs_per_second_per_lane')::float8, 0),
	array(select jsonb_array_elements_text(case when jsonb_typeof(q.settings -> 'quotas') = 'array' then q.settings -> 'quotas' else '[]' end)),
	coalesce((q.settings ->> 'concurrency')::int, 0), coalesce(d.mean, 0),
	coalesce(k.child_state, ''), coalesce(k.child_detail, ''), coalesce(k.child_pid, 0), coalesce(k.restarts, 0),
	coalesce(k.last_exit, ''), extract(epoch from now() - coalesce(k.last_exit_at, now()))::float8,
	coalesce(k.child_host, ''), coalesce(k.failed_reload, ''), extract(epoch from now() - coalesce(k.seen_at, now()))::float8
from {queues} q
-- Of a queue that has got another holder since, the one before knows nothing.
left join {queues} k on k.queue = q.queue and (k.child_supervisor = k.supervisor or k.supervisor is null or k.expires_at <= now())
full join (
	select queue,
		count(*) filter (where state = 'pending' and run_at <= now()) as due,
		count(*) filter (where state = 'pending' and run_at > now()) as later,
		count(*) filter (where state = 'running') as running,
		count(*) filter (where state = 'dead') as dead,
		min(run_at) filter (where state = 'pending' and run_at <= now()) as oldest
	from {jobs}
	where state in ('pending', 'running', 'dead')
	group by queue
) c on c.queue = q.queue
left join lateral (
	select count(*) as paused
	from {lanes}
	where queue = q.queue and paused_until > now()
		and q.lanes_paused_until > now() -- else there is none: do not look at thousands
) l on true
left join lateral (
	select json_agg(json_build_object('lane', lane, 'reason', coalesce(pause_reason, ''), 'for',
		case when paused_until < 'infinity' then extract(epoch from least(paused_until, now() + interval '100 days') - now())::float8 end)
		order by lane) as lanes
	from (
		select lane, paused_until, pause_reason
		from {lanes}
		where queue = q.queue and paused_until > now() and q.lanes_paused_until > now()
		order by lane
		limit $1
	) first
) f on true
left join lateral (
	select extract(epoch from avg(greatest(finished_at - started_at, interval '0')))::float8 as mean
	from (
		select started_at, finished_at
		from {jobs}
		where queue = coalesce(q.queue, c.queue) and state = 'done'
			and finished_at > now() - interval '1 hour' and finished_at <= now() and isfinite(started_at)
		order by finished_at desc
		limit 1000
	) newest
) d on true
order by 1`

// Status returns how every queue is that has jobs or ever had a holder.
func (s Schema) Status(ctx context.Context, db DB) ([]QueueStatus, error) {
	rows, err := db.Query(ctx, s.sql(statusSQL), MaxPausedLanes)
	if err != nil {
		return nil, fmt.Errorf("read status: %w", err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (q QueueStatus, err error) {
		var oldest, lease, paused, mean, exit, seen float64
		var lanes []pausedLane
		c := &q.Child
		err = row.Scan(&q.Queue, &q.Due, &q.Later, &q.Running, &q.Dead, &q.DoneLastHour, &oldest, &q.Holder, &lease, &paused,
			&q.PauseHasNoEnd, &q.PauseReason, &q.LanesPaused, &lanes, &q.MaxJobsPerSecond, &q.PerLane, &q.Quotas, &q.Concurrency, &mean,
			&c.State, &c.Detail, &c.PID, &c.Restarts, &c.LastExit, &exit, &q.ChildHost, &q.FailedReload, &seen)
		q.OldestDue, q.PausedFor, c.ExitAgo, q.SeenAgo = duration(oldest), duration(paused), duration(exit), duration(seen)
		q.MeanDuration = duration(mean)
		for _, l := range lanes {
			q.PausedLanes = append(q.PausedLanes, PausedLane{l.Lane, until(l.For), l.Reason})
		}
		if c.State != "" {
			c.Queue = q.Queue
		}
		if q.Holder != "" {
			q.LeaseEnds = duration(lease)
		}
		return q, err
	})
	if err != nil {
		return nil, fmt.Errorf("read status: %w", err)
	}
	return all, nil
}

// pausedLane is a PausedLane as the statement has it.
type pausedLane struct {
	Lane   string
	Reason string
	For    *float64
}
