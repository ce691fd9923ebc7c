package jobs

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// The ids come as an array: joining a CTE instead takes a plan that reads the whole queue. If fewer came than
// asked, the same statement says when the next is due: its snapshot has the retries this Step recorded. Suspects have
// an index of their own, nearly always empty.
const claimSQL = `
with claimed as (
	update {jobs} j
	set state = 'running', attempts = j.attempts + 1, epoch = $2, locked_at = now(), locked_by = $8,
		max_attempts = coalesce(j.max_attempts, ($6::jsonb ->> j.name)::int, $7)
	where j.id = any(array(
		select id
		from {jobs}
		where queue = $1 and state = 'pending' and run_at <= now() and id <> all($5::bigint[])
			and {suspect}
			and exists (select from {queues} where queue = $1 and epoch = $2 and holder = $3 and paused_until <= now())
		order by run_at, id
		limit $4
		for update skip locked))
	returning j.id, j.name, coalesce(j.args, '{}')::text as args, j.lane, j.run_at, j.attempts, j.requeues,
		j.attempts - j.excused as counted
)
select c.id, c.name, c.args, c.lane, c.attempts, c.requeues, c.counted,
	case when (select count(*) from claimed) < $4 then (
		select extract(epoch from least(run_at, now() + interval '1 day') - now())::float8
		from {jobs}
		where queue = $1 and state = 'pending' and run_at > now()
		order by run_at
		limit 1)
	end as due,
	(select greatest(extract(epoch from least(run_at, now() + interval '1 day') - now()), 0)::float8
		from {jobs}
		where queue = $1 and state = 'pending' and attempts - excused >= max_attempts and id <> all($5::bigint[])
		order by run_at
		limit 1) as suspect_due
from (select) one left join claimed c on true
order by c.run_at, c.id`

// The two claims: of suspects only, in the words of their index, and of all others. The comparison is null for a job
// that was never claimed.
var (
	claimSuspectSQL = strings.Replace(claimSQL, "{suspect}", "attempts - excused >= max_attempts", 1)
	claimOthersSQL  = strings.Replace(claimSQL, "{suspect}", "(attempts - excused >= max_attempts) is not true", 1)
)

func (q *Queue) queueClaim(b *pgx.Batch, s Step) {
	sql, skip := claimOthersSQL, s.Skip
	if s.Suspect {
		sql = claimSuspectSQL
	}
	if skip == nil {
		skip = []int64{} // null would skip everything
	}
	b.Queue(q.sql(sql), q.name, q.epoch, q.holder, s.Claim, skip, q.maxAttemptsByName, q.maxAttempts, q.lockedBy)
}

func (q *Queue) readClaim(results pgx.BatchResults, reply *Reply, suspect bool) error {
	rows, err := results.Query()
	if err != nil {
		return err
	}
	reply.Due, reply.SuspectDue = -1, -1
	var row claimRow
	_, err = pgx.ForEachRow(rows, row.fields(), func() error {
		if row.due != nil {
			reply.Due = duration(*row.due)
		}
		if row.suspectDue != nil {
			reply.SuspectDue = duration(*row.suspectDue)
		}
		if row.id != nil {
			reply.Claimed = append(reply.Claimed, row.claimed(q.name, suspect))
		}
		return nil
	})
	return err
}

// claimRow is one row of claimSQL. If nothing was claimed only the times are not null.
type claimRow struct {
	id                         *int64
	name, args, lane           *string
	attempt, requeues, counted *int
	due, suspectDue            *float64
}

func (r *claimRow) fields() []any {
	return []any{&r.id, &r.name, &r.args, &r.lane, &r.attempt, &r.requeues, &r.counted, &r.due, &r.suspectDue}
}

func (r *claimRow) claimed(queue string, suspect bool) Claimed {
	return Claimed{
		Job: Job{ID: *r.id, Queue: queue, Name: *r.name, Args: json.RawMessage(*r.args), Lane: *r.lane,
			Attempt: *r.attempt, Requeues: *r.requeues},
		Counted: *r.counted, Suspect: suspect,
	}
}

const headSQL = `
select id
from {jobs}
where queue = $1 and state = 'pending' and run_at <= now() and id <> all($2::bigint[])
	and ((attempts - excused >= max_attempts) is true) = $3
order by run_at, id
limit 1`

// Head is the job that a claim of one would take, of the suspects or of all others; 0: none. It finds the job that
// Postgres refuses to let us claim.
func (q *Queue) Head(ctx context.Context, skip []int64, suspect bool) (int64, error) {
	if skip == nil {
		skip = []int64{}
	}
	rows, err := q.conn.Query(ctx, q.sql(headSQL), q.name, skip, suspect)
	if err != nil {
		return 0, fmt.Errorf("find head of queue %s: %w", q.name, err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	return ids[0], nil
}
