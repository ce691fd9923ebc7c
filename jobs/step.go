package jobs

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// Step is everything a child has to say to Postgres at one moment.
type Step struct {
	Rates     Rates
	Starts    int                  // handlers started since the last Step
	Pause     time.Duration        // claim nothing for so long: 0 leaves a pause as it is
	Why       string               // the pause's reason
	Lanes     map[string]LanePause // lanes to pause; one that is paused for longer stays so
	Ended     []Ended
	Held      []Ref   // asked only when not empty: which of these are no longer ours
	Claim     int     // at most so many new jobs
	Turns     *Turns  // of the lanes; nil: Rates.Lane is taken for the only one
	Suspect   bool    // of the suspects, and of nothing else: see Claimed
	Skip      []int64 // not these
	AskDue    bool    // say when the next jobs are due
	AskPauses bool    // say which lanes have a pause
}

// Rates is what is known of the starts when a Step is sent, for whoever has the queue next.
type Rates struct {
	EmptyFor time.Duration // since the bucket was empty
	Quotas   string        // the counts of the quotas
	Waiting  int           // claimed jobs that have not started: they may, before more is known
	Lane     string        // the lane that was served last
	LaneLeft int           // how many more jobs it may have before the next lane
}

// LanePause is a pause of one lane.
type LanePause struct {
	For time.Duration
	Why string
}

// Reply is what Postgres answered to a Step.
type Reply struct {
	Paused      time.Duration            // until claims are allowed again; 0: they are
	NoPause     bool                     // there was none, or it was lifted by hand; not: it has ended
	PauseReason string                   // of the pause that holds
	PauseStays  bool                     // until it is lifted
	LanesPaused bool                     // some lane has a pause
	PausedLanes map[string]time.Duration // of AskPauses: for how long
	Recorded    []int64                  // the outcomes that are in; the rest is to be sent again, or gone
	Gone        []int64                  // of Held: cancelled, deleted, recovered by another
	Claimed     []Claimed                // in the order of their turns
	Served                               // of Claim

	// Of AskDue: until the next job that is not due yet will be, until the first suspect is, and until the first lane that
	// has a pause goes on; -1: none waits. At most a day.
	Due, SuspectDue, LaneDue time.Duration
	SuspectLane              string // of the first suspect
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
	q.tell(batch, s, &reply)
	if len(s.Held) > 0 {
		q.findGone(batch, s.Held, &reply.Gone)
	}
	switch {
	case s.Claim > 0 && s.Turns != nil && !s.Suspect:
		q.claimInTurn(batch, s, &reply)
	case s.Claim > 0:
		q.claim(batch, s, &reply)
	}
	if s.AskDue {
		q.askDue(batch, s, &reply)
	}
	if s.AskPauses {
		batch.Queue(q.sql(pausedLanesSQL), q.name).Query(func(rows pgx.Rows) (err error) {
			reply.PausedLanes, err = durations(rows)
			return err
		})
	}
	return reply, q.conn.SendBatch(ctx, batch).Close()
}

// tell adds what a Step and a release both say: the state of the rates, pauses, outcomes. The row of the queue comes first,
// as everywhere: an acquire that passed between the outcomes and the rest would find their rows locked and leave them.
func (q *Queue) tell(b *pgx.Batch, s Step, reply *Reply) {
	q.renew(b, s, reply)
	if len(s.Lanes) > 0 {
		q.pauseLanes(b, s.Lanes)
	}
	if len(s.Ended) > 0 {
		q.record(b, s.Ended, &reply.Recorded)
	}
}

// No row back: the lease is lost, and the statements behind this one change nothing either.
const renewSQL = `
update {queues}
set expires_at = now() + ttl,
	settled_at = now(),
	empty_at = now() - $4::float8 * interval '1 s',
	quotas = $5, waiting = $6, lane = $7, lane_left = $8,
	starts = starts + $9,
	paused_until = case when $10::float8 > 0 then greatest(paused_until, now() + $10::float8 * interval '1 s')
	                    else paused_until end,
	pause_reason = case when $10::float8 > 0 and now() + $10::float8 * interval '1 s' > paused_until then left($11, 500)
	                    else pause_reason end,
	lanes_paused_until = case when $12::float8 > 0 then greatest(lanes_paused_until, now() + $12::float8 * interval '1 s')
	                          else lanes_paused_until end
where queue = $1 and epoch = $2 and holder = $3
returning extract(epoch from greatest(least(paused_until, now() + interval '1 day'), now()) - now())::float8,
	paused_until <= now() and pause_reason is null, case when paused_until > now() then coalesce(pause_reason, '') else '' end,
	paused_until = 'infinity', lanes_paused_until > now()`

func (q *Queue) renew(b *pgx.Batch, s Step, reply *Reply) {
	r := s.Rates
	var lanes time.Duration
	for _, pause := range s.Lanes {
		lanes = max(lanes, pause.For)
	}
	args := []any{q.name, q.epoch, q.holder, seconds(r.EmptyFor), r.Quotas, r.Waiting, r.Lane, r.LaneLeft, s.Starts,
		seconds(s.Pause), s.Why, seconds(lanes)}
	b.Queue(q.sql(renewSQL), args...).QueryRow(func(row pgx.Row) error {
		var left float64
		err := row.Scan(&left, &reply.NoPause, &reply.PauseReason, &reply.PauseStays, &reply.LanesPaused)
		if errors.Is(err, pgx.ErrNoRows) {
			return ErrLeaseLost
		}
		if err != nil {
			return fmt.Errorf("renew: %w", err)
		}
		reply.Paused = duration(left)
		return nil
	})
}

const pauseLanesSQL = `
insert into {lanes} as l (queue, lane, paused_until, pause_reason)
select $1::text, p.lane, now() + p.seconds * interval '1 s', left(p.why, 500)
from unnest($4::text[], $5::float8[], $6::text[]) as p(lane, seconds, why)
where exists (select from {queues} where queue = $1 and epoch = $2 and holder = $3)
on conflict (queue, lane) do update
set paused_until = excluded.paused_until, pause_reason = excluded.pause_reason
where l.paused_until < excluded.paused_until`

func (q *Queue) pauseLanes(b *pgx.Batch, pauses map[string]LanePause) {
	lanes := slices.Sorted(maps.Keys(pauses))
	lengths, whys := make([]float64, len(lanes)), make([]string, len(lanes))
	for i, lane := range lanes {
		lengths[i], whys[i] = seconds(pauses[lane].For), pauses[lane].Why
	}
	b.Queue(q.sql(pauseLanesSQL), q.name, q.epoch, q.holder, lanes, lengths, whys)
}

// Of any more the claim still knows: it looks by itself.
const pausedLanesSQL = `
select lane, extract(epoch from least(paused_until, now() + interval '100 days') - now())::float8
from {lanes}
where queue = $1 and paused_until > now()
limit 20000`

// durations reads rows of a name and seconds.
func durations(rows pgx.Rows) (map[string]time.Duration, error) {
	all := map[string]time.Duration{}
	var name string
	var s float64
	_, err := pgx.ForEachRow(rows, []any{&name, &s}, func() error {
		all[name] = duration(s)
		return nil
	})
	return all, err
}

const goneSQL = `
select h.id
from unnest($1::bigint[], $2::int[]) as h(id, attempt)
where not exists (
	select from {jobs} j
	where j.id = h.id and j.attempts = h.attempt and j.state = 'running' and j.epoch = $3)`

func (q *Queue) findGone(b *pgx.Batch, held []Ref, gone *[]int64) {
	ids, attempts := split(held)
	b.Queue(q.sql(goneSQL), ids, attempts, q.epoch).Query(func(rows pgx.Rows) (err error) {
		if *gone, err = pgx.CollectRows(rows, pgx.RowTo[int64]); err != nil {
			return fmt.Errorf("find gone jobs: %w", err)
		}
		return nil
	})
}

func split(refs []Ref) (ids []int64, attempts []int) {
	for _, r := range refs {
		ids, attempts = append(ids, r.ID), append(attempts, r.Attempt)
	}
	return ids, attempts
}
