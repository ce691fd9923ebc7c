package jobs

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
)

// Few due jobs tell by themselves which lanes have any. If there are more, the lanes are visited in their order, however
// many jobs they have: at most so many more than jobs are asked for, for it takes an index search each. Most of them may
// have jobs for later only; so that those cannot keep the due ones waiting, the lanes of the oldest due jobs, and of the
// newest, are among those that have turns in any case.
//
// $9 begins what is left of the round: the lane served last while that has turns left, and else the first name after it.
// The round ends with $14, the last lane when it began: with new names growing, as numbers and dates do, it would never end
// otherwise. Then comes the next: first what is below $9, at last the lanes beyond.
const claimInTurnSQL = `
with recursive oldest as materialized (
	select lane::text as lane
	from {jobs}
	where queue = $1 and state = 'pending' and run_at <= now()
		and exists (select from {queues} where queue = $1 and epoch = $2 and holder = $3 and paused_until <= now())
	order by run_at, id
	limit 64
), newest as materialized (
	select lane::text as lane
	from {jobs}
	where queue = $1 and state = 'pending' and run_at <= now() and (select count(*) from oldest) = 64
	order by run_at desc, id desc
	limit 16
), upto as materialized (
	select coalesce(nullif($14::text, ''), t.lane) collate "C" as last, t.lane as top
	from (
		select lane::text
		from {jobs}
		where queue = $1 and state = 'pending'
		order by lane collate "C" desc, run_at desc, id desc
		limit 1
	) t
), walk as (
	select $9::text as lane, $9::text as next, false as again, 0 as weight, 0 as visited, 0 as got
	where (select count(*) from oldest) >= case when $15 then 1 else 64 end
	union all
	select l.lane, l.lane || E'\x01', l.again, t.weight, w.visited + 1,
		w.got + case when l.lane = $9 and $11 > 0 then least($11, t.weight) else t.weight end
	from walk w cross join lateral (
		(
			select lane::text, run_at, false as again
			from {jobs}
			where not w.again and queue = $1 and state = 'pending' and lane collate "C" >= w.next
				and lane collate "C" <= (select last from upto)
			order by lane collate "C", run_at, id
			limit 1
		) union all (
			select lane::text, run_at, true
			from {jobs}
			where not w.again and not $15 and queue = $1 and state = 'pending' and lane collate "C" < $9
			order by lane collate "C", run_at, id
			limit 1
		) union all (
			select lane::text, run_at, true
			from {jobs}
			where w.again and queue = $1 and state = 'pending' and lane collate "C" >= w.next and lane collate "C" < $9
			order by lane collate "C", run_at, id
			limit 1
		)
		limit 1
	) l cross join lateral (
		select case when l.run_at <= now() and {free} then greatest(1, ($10::jsonb ->> l.lane)::int) else 0 end as weight
	) t
	where w.got < $4 and w.visited < 50 + $4
), found as (
	select lane collate "C" as lane, weight
	from walk
	where weight > 0
	union
	select lane collate "C", greatest(1, ($10::jsonb ->> l.lane)::int)
	from (
		select lane
		from oldest
		where not $15
		union
		select lane
		from newest
		where not $15
	) l
	where {free}
), round as (
	select lane, weight, first, sum(first) over w as firsts, sum(weight) over w as weights, sum(first) over () as all_firsts,
		sum(weight) over () as all_weights
	from (
		-- Of the lane that is in the middle of its turn only what is left of it.
		select lane, weight, case when lane = $9 and $11 > 0 then least($11, weight) else weight end as first
		from found
	) f
	window w as (order by case when lane < $9 then 1 when lane > (select last from upto) then 2 else 0 end, lane)
), granted as (
	select lane, firsts, all_firsts, weights, coalesce(nullif(mod($4 - all_firsts, all_weights), 0), all_weights) as rest,
		-- The rest of this round; then as many whole rounds as there are, and what is left.
		least(case when $13 then 1 else $4 end, case when $4 <= all_firsts then greatest(0, least(first, $4 - firsts + first))
			else first + div($4 - all_firsts, all_weights) * weight
				+ greatest(0, least(weight, mod($4 - all_firsts, all_weights) - weights + weight)) end) as n
	from round
), claimed as (
	{claimed}
)
select coalesce(w.visited >= 50 + $4 and w.got < $4, false), coalesce(u.top collate "C" > u.last, false), coalesce(u.top, ''), w.lane, g.lane, coalesce(g.left, 0), coalesce(g.all_n, 0), {others}, c.*
from (select) one
left join upto u on true
left join (select lane, visited, got from walk order by visited desc limit 1) w on true
left join (
	select lane, (case when $4 <= all_firsts then firsts - $4 else weights - rest end)::int as left,
		(select sum(n) from granted)::int as all_n
	from granted
	where case when $4 <= all_firsts then firsts >= $4 else weights >= rest end
	order by weights
	limit 1
) g on true
left join claimed c on true`

const claimedSQL = `update {jobs} j
	set state = 'running', attempts = j.attempts + 1, epoch = $2, locked_at = now(), locked_by = $8,
		max_attempts = coalesce(j.max_attempts, ($6::jsonb ->> j.name)::int, $7)
	where j.ctid = any({places})
	returning j.id, j.name, coalesce(j.args, '{}')::text as args, j.lane, j.attempts, j.requeues, j.throttled, j.attempts - j.excused as counted,
		j.max_attempts, j.attempts - j.excused > j.max_attempts as suspect, extract(epoch from j.run_at)::float8 as run_at`

// onlyFoundSQL is for Head, which must not touch what Postgres refuses.
const onlyFoundSQL = `select id, name, '{}' as args, lane, attempts, requeues, throttled, 0 as counted, $7::int, $6::text = $8::text, 0::float8
	from {jobs}
	where ctid = any({places})`

// freeSQL is whether the lane l has not to wait. It says "is not true" where "not exists" would do: that would be taken
// for a join, and made for every job there is before the first of them is chosen.
const freeSQL = `l.lane not in (select unnest($12::text[]))
	and exists (select from {lanes} p where p.queue = $1 and p.lane = l.lane and p.paused_until > now()) is not true`

// freeStrictSQL is the same with order = "strict": a job that was started before and waits for its retry, or for its turn
// as a suspect, has the others of its lane wait too; and so does one that runs.
const freeStrictSQL = freeSQL + `
	and l.lane not in (select lane::text from {jobs} where state = 'running' and queue = $1)
	and l.lane not in (select lane::text from {jobs} where queue = $1 and {suspects})
	and exists (
		select from {jobs} s
		where s.queue = $1 and s.state = 'pending' and s.attempts > 0 and s.lane collate "C" = l.lane and s.run_at > now()) is not true`

// placesSQL are the places of the jobs that are granted: the longest due of each lane.
const placesSQL = `array(
		select p.ctid
		from granted g cross join lateral (
			select ctid
			from {jobs}
			where queue = $1 and state = 'pending' and lane collate "C" = g.lane and run_at <= now() and {others_only}
				and id <> all($5::bigint[])
			order by run_at, id
			limit g.n
			for update skip locked
		) p)`

// othersSQL is whether there is another lane than one that was granted something; null: none was.
const othersSQL = `(
		select exists (select from {jobs} where queue = $1 and state = 'pending' and lane collate "C" > x.lane)
			or exists (select from {jobs} where queue = $1 and state = 'pending' and lane collate "C" < x.lane)
		from granted x
		where x.n > 0
		limit 1)`

// placesStrictSQL: a job that was started before goes first, though its run_at is that of its retry.
func placesStrictSQL() string {
	first := strings.Replace(placesSQL, "and {others_only}", "and {others_only} and attempts > 0", 1)
	return first + ` || ` + strings.Replace(placesSQL, "granted g cross", `(
			select *
			from granted g
			where exists (
				select from {jobs} s
				where s.queue = $1 and s.state = 'pending' and s.attempts > 0 and s.lane collate "C" = g.lane) is not true
		) g cross`, 1)
}

// inTurn are the statements, made when the first queue of a process needs them: most have but one lane.
var inTurn = sync.OnceValue(func() (all struct{ claim, claimStrict, head, headStrict string }) {
	all.claim = inTurnOf(claimedSQL, freeSQL, placesSQL)
	all.claimStrict = inTurnOf(claimedSQL, freeStrictSQL, placesStrictSQL())
	all.head = inTurnOf(onlyFoundSQL, freeSQL, placesSQL)
	all.headStrict = inTurnOf(onlyFoundSQL, freeStrictSQL, placesStrictSQL())
	return all
})

func inTurnOf(claimed, free, places string) string {
	whole := claimInTurnSQL
	for _, part := range [][2]string{
		{"{claimed}", claimed}, {"{free}", free}, {"{places}", places}, {"{others}", othersSQL}, {"{others_only}", notSuspect},
		{"{suspects}", suspects},
	} {
		whole = strings.ReplaceAll(whole, part[0], part[1])
	}
	return whole
}

func (q *Queue) claimInTurn(b *pgx.Batch, s Step, reply *Reply) {
	sql := inTurn().claim
	if s.Turns.Strict {
		sql = inTurn().claimStrict
	}
	begin, left, args := q.turnArgs(s)
	b.Queue(q.sql(sql), args...).Query(func(rows pgx.Rows) error {
		unsorted, err := q.scanServed(rows, s.Rates, &reply.Served)
		if err != nil {
			return fmt.Errorf("claim in turn: %w", err)
		}
		reply.Claimed = s.Turns.inOrder(unsorted, begin, left)
		return nil
	})
}

// turnArgs are the arguments of a claim in turn, two of which say where the round begins.
func (q *Queue) turnArgs(s Step) (begin string, left int, args []any) {
	t, weights := *s.Turns, "{}"
	begin, left = s.Rates.Lane, s.Rates.LaneLeft
	if t.One || t.Strict {
		left = 0
	} else if len(t.Weights) > 0 {
		text, _ := json.Marshal(t.Weights) // texts and numbers: cannot fail
		weights = string(text)
	}
	if left == 0 {
		begin += "\x01" // the first name after it: no text has a zero byte
	}
	return begin, left, []any{q.name, q.epoch, q.holder, s.Claim, notNull(s.Skip), q.maxAttemptsByName, q.maxAttempts, q.lockedBy,
		begin, weights, left, append([]string{}, t.Waiting...), t.One || t.Strict, t.Last, t.Narrow}
}

// headInTurn is Head where lanes take turns.
func (q *Queue) headInTurn(ctx context.Context, s Step) (int64, error) {
	sql := inTurn().head
	if s.Turns.Strict {
		sql = inTurn().headStrict
	}
	s.Claim = 1
	_, _, args := q.turnArgs(s)
	rows, err := q.conn.Query(ctx, q.sql(sql), args...)
	if err != nil {
		return 0, fmt.Errorf("find head of queue %s: %w", q.name, err)
	}
	found, err := q.scanServed(rows, s.Rates, new(Served))
	if err != nil {
		return 0, fmt.Errorf("find head of queue %s: %w", q.name, err)
	}
	if len(found) == 0 {
		return 0, nil
	}
	return found[0].ID, nil
}

// scanServed reads rows that each begin with what is the same in all: how the lanes were served.
func (q *Queue) scanServed(rows pgx.Rows, before Rates, served *Served) (claimed []claimedRow, err error) {
	defer rows.Close()
	s := Served{Lane: before.Lane, LaneLeft: before.LaneLeft}
	defer func() { *served = s }()
	for rows.Next() {
		var last, lane *string
		var left int
		var others *bool
		var c claimedOrNot
		if err := rows.Scan(append([]any{&s.Cut, &s.Beyond, &s.Top, &last, &lane, &left, &s.Granted, &others}, c.fields()...)...); err != nil {
			return nil, err
		}
		switch {
		case s.Cut:
			s.Lane, s.LaneLeft = *last, 0
		case lane != nil:
			s.Lane, s.LaneLeft = *lane, left
		}
		s.Others = others == nil || *others
		if c.id != nil {
			claimed = append(claimed, c.row(q.name))
		}
	}
	return claimed, rows.Err()
}
