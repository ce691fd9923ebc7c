package jobs

import (
	"context"
	"encoding/json"
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
	Skip     []int64 // not these
}

// Reply is what Postgres answered to a Step.
type Reply struct {
	Paused   time.Duration // until claims are allowed again; 0: they are
	Recorded []int64       // the outcomes that are in; the rest is to be sent again, or gone
	Gone     []int64       // of Held: cancelled, deleted, recovered by another
	Claimed  []Claimed     // oldest first
	Due      time.Duration // until the next job is due, if fewer came than asked; -1: none waits
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
		if err = q.readClaim(results, &reply); err != nil {
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
	b.Queue(q.schema.sql(renewSQL), q.name, q.epoch, q.holder, seconds(s.EmptyFor), s.Starts, seconds(s.Pause), s.Why)
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

// The one place that decides between pending, done and dead. An outcome is fenced by its attempt, its row's
// epoch and the lease; a row somebody has locked is left for the next Step. started_at and finished_at are the
// last attempt's: of a death nobody knows the start, so the time of the claim stands in; an attempt that was
// excused before its start leaves both.
const recordSQL = `
update {jobs} j
set state = case when o.kind = 'done' then 'done'
	             when o.kind = 'dead' or (o.kind = 'fail' and j.attempts - j.excused >= j.max_attempts) then 'dead'
	             else 'pending' end,
	excused = j.excused + (o.kind in ('excused', 'throttled'))::int,
	throttled = j.throttled + (o.kind = 'throttled')::int,
	run_at = case when o.delay > 0 then now() + o.delay * interval '1 s' else j.run_at end,
	started_at = case when o.age is not null then now() - o.age * interval '1 s'
	                  when o.kind = 'excused' then j.started_at
	                  else j.locked_at end,
	finished_at = case when o.kind = 'excused' and o.age is null then j.finished_at else now() end,
	last_error = case when o.kind = 'done' then null else coalesce(nullif(o.error, ''), j.last_error) end,
	epoch = null, locked_at = null, locked_by = null
from unnest($4::bigint[], $5::int[], $6::bigint[], $7::text[], $8::float8[], $9::float8[], $10::text[])
	as o(id, attempt, epoch, kind, delay, age, error)
where j.id = o.id and j.attempts = o.attempt and j.state = 'running' and j.epoch is not distinct from o.epoch
	and exists (select from {queues} where queue = $1 and epoch = $2 and holder = $3)
	and j.id = any(array(select id from {jobs} where id = any($4) for no key update skip locked))
returning j.id`

func (q *Queue) queueRecord(b *pgx.Batch, ended []Ended) {
	epochs := make([]*int64, len(ended))
	for i := range epochs {
		epochs[i] = &q.epoch
	}
	b.Queue(q.schema.sql(recordSQL), q.recordArgs(ended, epochs)...)
}

// recordArgs are the arguments of recordSQL; epochs are what the rows say, not what the lease says.
func (q *Queue) recordArgs(ended []Ended, epochs []*int64) []any {
	n := len(ended)
	ids, attempts := make([]int64, n), make([]int, n)
	kinds, delays, ages, errors := make([]string, n), make([]float64, n), make([]*float64, n), make([]string, n)
	for i, e := range ended {
		ids[i], attempts[i] = e.ID, e.Attempt
		kinds[i], delays[i], errors[i] = string(e.Kind), seconds(e.Delay), e.Error
		if !e.Started.IsZero() {
			age := seconds(time.Since(e.Started))
			ages[i] = &age
		}
	}
	return []any{q.name, q.epoch, q.holder, ids, attempts, epochs, kinds, delays, ages, errors}
}

const goneSQL = `
select h.id
from unnest($1::bigint[], $2::int[]) as h(id, attempt)
where not exists (
	select from {jobs} j
	where j.id = h.id and j.attempts = h.attempt and j.state = 'running' and j.epoch = $3)`

func (q *Queue) queueGone(b *pgx.Batch, held []Ref) {
	ids, attempts := split(held)
	b.Queue(q.schema.sql(goneSQL), ids, attempts, q.epoch)
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

// The ids come as an array: joining a CTE instead takes a plan that reads the whole queue. If fewer came than
// asked, the same statement says when the next is due: its snapshot has the retries this Step recorded.
const claimSQL = `
with claimed as (
	update {jobs} j
	set state = 'running', attempts = j.attempts + 1, epoch = $2, locked_at = now(), locked_by = $8,
		max_attempts = coalesce(j.max_attempts, ($6::jsonb ->> j.name)::int, $7)
	where j.id = any(array(
		select id
		from {jobs}
		where queue = $1 and state = 'pending' and run_at <= now() and id <> all($5::bigint[])
			and exists (select from {queues} where queue = $1 and epoch = $2 and holder = $3 and paused_until <= now())
		order by run_at, id
		limit $4
		for update skip locked))
	returning j.id, j.name, coalesce(j.args, '{}')::text as args, j.lane, j.run_at, j.attempts, j.requeues, j.throttled,
		j.attempts - j.excused as counted, j.attempts - j.excused > j.max_attempts as alone,
		extract(epoch from now() - greatest(j.run_at, now() - interval '100 days'))::float8 as waited
)
select c.id, c.name, c.args, c.lane, c.attempts, c.requeues, c.throttled, c.counted, c.alone, c.waited,
	case when (select count(*) from claimed) < $4 then (
		select extract(epoch from least(run_at, now() + interval '1 day') - now())::float8
		from {jobs}
		where queue = $1 and state = 'pending' and run_at > now()
		order by run_at
		limit 1)
	end as due
from (select) one left join claimed c on true
order by c.run_at, c.id`

func (q *Queue) queueClaim(b *pgx.Batch, s Step) {
	byName, _ := json.Marshal(q.limits.ByName) // a map of numbers always encodes
	if q.limits.ByName == nil {
		byName = []byte("{}")
	}
	skip := s.Skip
	if skip == nil {
		skip = []int64{} // null would skip everything
	}
	b.Queue(q.schema.sql(claimSQL), q.name, q.epoch, q.holder, s.Claim, skip, string(byName), q.limits.MaxAttempts, q.lockedBy)
}

func (q *Queue) readClaim(results pgx.BatchResults, reply *Reply) error {
	rows, err := results.Query()
	if err != nil {
		return err
	}
	reply.Due = -1
	var row claimRow
	_, err = pgx.ForEachRow(rows, row.fields(), func() error {
		if row.due != nil {
			reply.Due = duration(*row.due)
		}
		if row.id != nil {
			reply.Claimed = append(reply.Claimed, row.claimed(q.name))
		}
		return nil
	})
	return err
}

// claimRow is one row of claimSQL; all but due are null when nothing was claimed.
type claimRow struct {
	id                                    *int64
	name, args, lane                      *string
	attempt, requeues, throttled, counted *int
	alone                                 *bool
	waited, due                           *float64
}

func (r *claimRow) fields() []any {
	return []any{&r.id, &r.name, &r.args, &r.lane, &r.attempt, &r.requeues, &r.throttled, &r.counted, &r.alone, &r.waited, &r.due}
}

func (r *claimRow) claimed(queue string) Claimed {
	return Claimed{
		Job: Job{ID: *r.id, Queue: queue, Name: *r.name, Args: json.RawMessage(*r.args), Lane: *r.lane,
			Attempt: *r.attempt, Requeues: *r.requeues},
		Counted: *r.counted, Throttled: *r.throttled, Alone: *r.alone, Waited: duration(*r.waited),
	}
}
