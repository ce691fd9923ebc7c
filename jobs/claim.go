package jobs

import (
	"context"
	"fmt"
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
	from {jobs} l
	where queue = $1 and {which} and run_at <= now() and id <> all($5::bigint[]) and {free}
		and exists (select from {queues} where queue = $1 and epoch = $2 and holder = $3 and paused_until <= now() and {lanes_free})
	order by run_at, id
	limit $4
	for update skip locked))
returning j.id, j.name, coalesce(j.args, '{}')::text, j.lane, j.attempts, j.requeues, j.throttled, j.attempts - j.excused, j.max_attempts,
	j.attempts - j.excused > j.max_attempts, extract(epoch from j.run_at)::float8,
	exists (select from {jobs} where queue = $1 and state = 'pending' and lane collate "C" > $9)
		or exists (select from {jobs} where queue = $1 and state = 'pending' and lane collate "C" < $9)`

// The two claims: of suspects only, in the words of their index, and of all others. The comparison is null for a job
// that was never claimed.
const (
	suspects   = "state not in ('running', 'done', 'dead') and attempts - excused >= max_attempts"
	notSuspect = "(attempts - excused >= max_attempts) is not true"
	others     = "state = 'pending' and " + notSuspect
)

var (
	claimOthersSQL        = claimOf(others, "true", "lanes_paused_until <= now()") // looks at no lane
	claimSuspectSQL       = claimOf(suspects, freeSuspectSQL, "true")
	claimSuspectStrictSQL = claimOf(suspects, freeSuspectStrictSQL, "true")
)

// freeSuspectSQL is freeSQL for a job l. There are few suspects: all may be looked at.
const freeSuspectSQL = `l.lane::text not in (select unnest({waiting}::text[]))
		and exists (select from {lanes} p where p.queue = $1 and p.lane = l.lane::text and p.paused_until > now()) is not true`

// freeSuspectStrictSQL is freeStrictSQL for a suspect l, which need not wait for itself.
const freeSuspectStrictSQL = freeSuspectSQL + `
		and l.lane::text not in (select lane::text from {jobs} where state = 'running' and queue = $1)
		and exists (
			select from {jobs} s
			where s.queue = $1 and s.state = 'pending' and s.attempts > 0 and s.lane collate "C" = l.lane collate "C"
				and s.run_at > now()) is not true`

func claimOf(which, free, lanesFree string) string {
	free = strings.ReplaceAll(free, "{waiting}", "$10")
	whole := strings.ReplaceAll(claimSQL, "{which}", which)
	return strings.ReplaceAll(strings.ReplaceAll(whole, "{free}", free), "{lanes_free}", lanesFree)
}

var dueSQL = strings.Replace(dueOfBothSQL, "{suspects}", suspects, 1)

// claim claims without turns: from the only lane, nothing if some lane has a pause; or one suspect of any.
func (q *Queue) claim(b *pgx.Batch, s Step, reply *Reply) {
	sql := claimOthersSQL
	args := []any{q.name, q.epoch, q.holder, s.Claim, notNull(s.Skip), q.maxAttemptsByName, q.maxAttempts, q.lockedBy, s.Rates.Lane}
	if s.Suspect {
		t := s.turns()
		sql = claimSuspectSQL
		if t.Strict {
			sql = claimSuspectStrictSQL
		}
		args = append(args, append([]string{}, t.Waiting...))
	}
	reply.Served = Served{Lane: s.Rates.Lane, LaneLeft: s.Rates.LaneLeft, Others: s.Turns != nil}
	b.Queue(q.sql(sql), args...).Query(func(rows pgx.Rows) error {
		unsorted, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (claimedRow, error) {
			return q.scanClaimed(row, &reply.Others)
		})
		if err != nil {
			return fmt.Errorf("claim: %w", err)
		}
		sortByAge(unsorted)
		reply.Claimed = jobsOf(unsorted)
		return nil
	})
}

// turns are those of the Step, or of one lane.
func (s Step) turns() Turns {
	if s.Turns == nil {
		return Turns{}
	}
	return *s.Turns
}

// Its snapshot has the retries this Step recorded. Suspects have an index of their own, nearly always empty.
const dueOfBothSQL = `
select (
		select extract(epoch from least(run_at, now() + interval '1 day') - now())::float8
		from {jobs}
		where queue = $1 and state = 'pending' and run_at > now()
		order by run_at
		limit 1),
	s.due, s.lane, (
		select extract(epoch from least(min(paused_until), now() + interval '1 day') - now())::float8
		from {lanes}
		where queue = $1 and paused_until > now()
			and exists (select from {queues} where queue = $1 and lanes_paused_until > now()) -- else there is none to look for
		having count(*) > 0)
from (select) one
left join (
	select extract(epoch from greatest(least(run_at, now() + interval '1 day'), now()) - now())::float8 as due, lane
	from {jobs} l
	where queue = $1 and {suspects} and id <> all($2::bigint[])
		and exists (select from {lanes} p where p.queue = $1 and p.lane = l.lane::text and p.paused_until > now()) is not true
	order by run_at
	limit 1
) s on true`

func (q *Queue) askDue(b *pgx.Batch, s Step, reply *Reply) {
	b.Queue(q.sql(dueSQL), q.name, notNull(s.Skip)).QueryRow(func(row pgx.Row) error {
		var due, suspect, lane *float64
		var of *string
		if err := row.Scan(&due, &suspect, &of, &lane); err != nil {
			return fmt.Errorf("ask for due jobs: %w", err)
		}
		reply.Due, reply.SuspectDue, reply.LaneDue = until(due), until(suspect), until(lane)
		if of != nil {
			reply.SuspectLane = *of
		}
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
from {jobs} l
where queue = $1 and {which} and run_at <= now() and id <> all($2::bigint[]) and {free}
order by run_at, id
limit 1`

var (
	headOthersSQL        = headOf(others, "true")
	headSuspectSQL       = headOf(suspects, freeSuspectSQL)
	headSuspectStrictSQL = headOf(suspects, freeSuspectStrictSQL)
)

func headOf(which, free string) string {
	return strings.ReplaceAll(strings.ReplaceAll(headSQL, "{which}", which), "{free}", strings.ReplaceAll(free, "{waiting}", "$3"))
}

// Head is the job that a Step which claims one would claim; 0: none. It finds the job that Postgres refuses to let us
// claim.
func (q *Queue) Head(ctx context.Context, s Step) (int64, error) {
	sql, args := headOthersSQL, []any{q.name, notNull(s.Skip)}
	t := s.turns()
	switch {
	case s.Suspect:
		sql, args = headSuspectSQL, append(args, append([]string{}, t.Waiting...))
		if t.Strict {
			sql = headSuspectStrictSQL
		}
	case s.Turns != nil:
		return q.headInTurn(ctx, s)
	}
	rows, err := q.conn.Query(ctx, q.sql(sql), args...)
	if err != nil {
		return 0, fmt.Errorf("find head of queue %s: %w", q.name, err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	return ids[0], nil
}
