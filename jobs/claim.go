package jobs

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// The rows come as an array of their places: joining a CTE instead takes a plan that reads the whole queue, and by id
// each row would be looked for once more. A place is good for the one statement that has locked its row.
const claimSQL = `
update {jobs} j
set state = 'running', attempts = j.attempts + 1, epoch = $2, locked_at = now(), locked_by = $8,
	max_attempts = coalesce(j.max_attempts, ($6::jsonb ->> j.name)::int, $7)
where j.ctid = any(array(
	select ctid
	from {jobs}
	where queue = $1 and {which} and run_at <= now() and id <> all($5::bigint[])
		and exists (select from {queues} where queue = $1 and epoch = $2 and holder = $3 and paused_until <= now())
	order by run_at, id
	limit $4
	for update skip locked))
returning j.id, j.name, coalesce(j.args, '{}')::text, j.lane, j.attempts, j.requeues, j.throttled, j.attempts - j.excused, j.max_attempts,
	j.attempts - j.excused > j.max_attempts, extract(epoch from j.run_at)::float8`

// The two claims: of suspects only, in the words of their index, and of all others. The comparison is null for a job
// that was never claimed.
const (
	suspects = "state not in ('running', 'done', 'dead') and attempts - excused >= max_attempts"
	others   = "state = 'pending' and (attempts - excused >= max_attempts) is not true"
)

var (
	claimSuspectSQL = strings.Replace(claimSQL, "{which}", suspects, 1)
	claimOthersSQL  = strings.Replace(claimSQL, "{which}", others, 1)
	dueSQL          = strings.Replace(dueOfBothSQL, "{suspects}", suspects, 1)
)

func (q *Queue) claim(b *pgx.Batch, s Step, claimed *[]Claimed) {
	sql := claimOthersSQL
	if s.Suspect {
		sql = claimSuspectSQL
	}
	args := []any{q.name, q.epoch, q.holder, s.Claim, notNull(s.Skip), q.maxAttemptsByName, q.maxAttempts, q.lockedBy}
	b.Queue(q.sql(sql), args...).Query(func(rows pgx.Rows) error {
		unsorted, err := pgx.CollectRows(rows, q.scanClaimed)
		if err != nil {
			return fmt.Errorf("claim: %w", err)
		}
		*claimed = sorted(unsorted)
		return nil
	})
}

// claimedRow is a job as RETURNING has it: in no order.
type claimedRow struct {
	Claimed
	runAt float64 // seconds; may be infinite
}

func (q *Queue) scanClaimed(row pgx.CollectableRow) (claimedRow, error) {
	c := claimedRow{Claimed: Claimed{Job: Job{Queue: q.name}}}
	return c, row.Scan(&c.ID, &c.Name, (*[]byte)(&c.Args), &c.Lane, &c.Attempt, &c.Requeues, &c.Throttled, &c.Counted, &c.Limit, &c.Suspect, &c.runAt)
}

// sorted are the jobs, the longest due first.
func sorted(rows []claimedRow) []Claimed {
	slices.SortFunc(rows, func(a, b claimedRow) int {
		return cmp.Or(cmp.Compare(a.runAt, b.runAt), cmp.Compare(a.ID, b.ID))
	})
	claimed := make([]Claimed, len(rows))
	for i, row := range rows {
		claimed[i] = row.Claimed
	}
	return claimed
}

// Its snapshot has the retries this Step recorded. Suspects have an index of their own, nearly always empty.
const dueOfBothSQL = `
select (
		select extract(epoch from least(run_at, now() + interval '1 day') - now())::float8
		from {jobs}
		where queue = $1 and state = 'pending' and run_at > now()
		order by run_at
		limit 1), (
		select extract(epoch from greatest(least(run_at, now() + interval '1 day'), now()) - now())::float8
		from {jobs}
		where queue = $1 and {suspects} and id <> all($2::bigint[])
		order by run_at
		limit 1)`

func (q *Queue) askDue(b *pgx.Batch, s Step, reply *Reply) {
	b.Queue(q.sql(dueSQL), q.name, notNull(s.Skip)).QueryRow(func(row pgx.Row) error {
		var due, suspect *float64
		if err := row.Scan(&due, &suspect); err != nil {
			return fmt.Errorf("ask for due jobs: %w", err)
		}
		reply.Due, reply.SuspectDue = until(due), until(suspect)
		return nil
	})
}

func until(s *float64) time.Duration {
	if s == nil {
		return -1
	}
	return duration(*s)
}

// notNull keeps a missing list of ids from being null, which is not equal to, and not different from, anything.
func notNull(ids []int64) []int64 {
	if ids == nil {
		return []int64{}
	}
	return ids
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
	rows, err := q.conn.Query(ctx, q.sql(headSQL), q.name, notNull(skip), suspect)
	if err != nil {
		return 0, fmt.Errorf("find head of queue %s: %w", q.name, err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	return ids[0], nil
}
