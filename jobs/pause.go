package jobs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// Beginner is what pgx.Tx, *pgx.Conn and *pgxpool.Pool share: it begins a transaction, or a savepoint inside one.
type Beginner interface {
	Begin(ctx context.Context) (pgx.Tx, error)
}

// Pause is why a queue, or a lane of it, starts no job. The zero Pause is none.
type Pause struct {
	For    time.Duration // from now; at most 100 days
	Until  string        // as Listed has times; "infinity": until it is resumed; "": there is no pause
	Reason string        // "": nobody said why
}

// Holds reports whether there is a pause.
func (p Pause) Holds() bool { return p.Until != "" }

// HasEnd reports whether the pause ends by itself.
func (p Pause) HasEnd() bool { return p.Until != "infinity" }

// Paused is what holds after a Pause.
type Paused struct {
	Pause
	Kept    bool // one that ends no earlier was there already and stays, with its reason
	Unknown bool // the queue has no job and never had a worker: its name may be wrong
}

// Pause lets the queue start nothing for so long, or until it is resumed if howLong is 0, or only the lane if that is
// not "". Jobs that run are left alone. A pause never shortens another: of two the one that ends later holds, with its
// reason, or with that of the other if it has none. A reason is cut to MaxReason. The worker is told at once; whatever
// starts later honours it too. A name that breaks a rule, and a howLong below 0, are an ErrInvalid. In a transaction of
// the caller, which must be read committed, the pause holds once that commits.
func (s Schema) Pause(ctx context.Context, db Beginner, queue, lane string, howLong time.Duration, reason string) (Paused, error) {
	err := checkPause(queue, lane)
	if howLong < 0 {
		err = errors.Join(err, fmt.Errorf("pause of %v: must not be negative", howLong))
	}
	if err != nil {
		return Paused{}, fmt.Errorf("pause: %w", invalid{err})
	}
	var after Paused
	err = s.changePause(ctx, db, queue, func(tx pgx.Tx) (err error) {
		after, err = s.pause(ctx, tx, queue, lane, howLong, reason)
		return err
	})
	if err != nil {
		return Paused{}, fmt.Errorf("pause: %w", err)
	}
	return after, nil
}

const pauseQueueSQL = `
update {queues} q
set paused_until = greatest(q.paused_until, p.until),
	pause_reason = case when p.until > q.paused_until
		then coalesce(nullif($3::text, ''), case when q.paused_until > now() then q.pause_reason end)
		else q.pause_reason end
from (select case when $2::float8 > 0 then now() + $2::float8 * interval '1 s' else 'infinity' end as until) p
where q.queue = $1`

const pauseLaneSQL = `
with paused as (
	insert into {lanes} as l (queue, lane, paused_until, pause_reason)
	values ($1, $4, case when $2::float8 > 0 then now() + $2::float8 * interval '1 s' else 'infinity' end, nullif($3::text, ''))
	on conflict (queue, lane) do update
	set paused_until = greatest(l.paused_until, excluded.paused_until),
		pause_reason = case when excluded.paused_until > l.paused_until
			then coalesce(excluded.pause_reason, case when l.paused_until > now() then l.pause_reason end)
			else l.pause_reason end
	returning paused_until
)
update {queues}
set lanes_paused_until = greatest(lanes_paused_until, (select paused_until from paused))
where queue = $1`

func (s Schema) pause(ctx context.Context, tx pgx.Tx, queue, lane string, howLong time.Duration, reason string) (after Paused, err error) {
	if _, err := tx.Exec(ctx, s.sql(makeQueueSQL), queue); err != nil {
		return after, fmt.Errorf("make row: %w", err)
	}
	before, err := s.lockPause(ctx, tx, queue, lane)
	if err != nil {
		return after, err
	}
	sql, args := pauseQueueSQL, []any{queue, seconds(howLong), shortReason(reason)}
	if lane != "" {
		sql, args = pauseLaneSQL, append(args, lane)
	}
	if _, err := tx.Exec(ctx, s.sql(sql), args...); err != nil {
		return after, err
	}
	if after.Pause, err = s.lockPause(ctx, tx, queue, lane); err != nil {
		return after, err
	}
	after.Kept = before.Until == after.Until
	after.Unknown, err = s.unknown(ctx, tx, queue)
	return after, err
}

// Resumed is what was lifted by a Resume.
type Resumed struct {
	Was     Pause // of the lane, if one was named; else of the queue
	Lanes   int   // that were paused too, if none was named
	Still   Pause // of the queue, which keeps the lane waiting that was named
	Unknown bool  // as in Paused
}

// Resume ends the pause of a queue and those of all its lanes, or only that of the lane if that is not "". The worker
// is told at once. To resume what is not paused changes nothing. Names and transactions are as with Pause.
func (s Schema) Resume(ctx context.Context, db Beginner, queue, lane string) (Resumed, error) {
	if err := checkPause(queue, lane); err != nil {
		return Resumed{}, fmt.Errorf("resume: %w", invalid{err})
	}
	var r Resumed
	err := s.changePause(ctx, db, queue, func(tx pgx.Tx) (err error) {
		r, err = s.resume(ctx, tx, queue, lane)
		return err
	})
	if err != nil {
		return Resumed{}, fmt.Errorf("resume: %w", err)
	}
	return r, nil
}

// The pause ends now, and was there until now: who starts next may have to know.
const (
	resumeQueueSQL = `
update {queues}
set paused_until = least(paused_until, now()), pause_reason = null, lanes_paused_until = least(lanes_paused_until, now())
where queue = $1`

	resumeLanesSQL = `
update {lanes}
set paused_until = now(), pause_reason = null
where queue = $1 and paused_until > now() and ($2::text = '' or lane = $2)`

	// The rest of the lanes may have pauses that go on.
	resumeLaneSQL = `
update {queues}
set lanes_paused_until = coalesce((select max(paused_until) from {lanes} where queue = $1), '-infinity')
where queue = $1`
)

func (s Schema) resume(ctx context.Context, tx pgx.Tx, queue, lane string) (r Resumed, err error) {
	if r.Was, err = s.lockPause(ctx, tx, queue, lane); err != nil {
		return r, err
	}
	// A statement of its own: what came before may have waited for the row of the queue, and saw the lanes before that.
	lifted, err := tx.Exec(ctx, s.sql(resumeLanesSQL), queue, lane)
	if err != nil {
		return r, err
	}
	sql := resumeQueueSQL
	if lane != "" {
		sql = resumeLaneSQL
		r.Still, err = s.lockPause(ctx, tx, queue, "")
	} else {
		r.Lanes = int(lifted.RowsAffected())
	}
	if err != nil {
		return r, err
	}
	if _, err := tx.Exec(ctx, s.sql(sql), queue); err != nil {
		return r, err
	}
	r.Unknown, err = s.unknown(ctx, tx, queue)
	return r, err
}

// changePause runs change in a transaction that tells the worker when it commits. Read committed: each statement needs
// a snapshot of its own, taken after the wait for the row of the queue.
func (s Schema) changePause(ctx context.Context, db Beginner, queue string, change func(pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `set transaction isolation level read committed`); err != nil {
			return err
		}
		if err := change(tx); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `select pg_notify('jobs_' || $1::text, 'pause')`, queue)
		return err
	})
}

const lockQueuePauseSQL = `
select extract(epoch from least(greatest(paused_until, now()), now() + interval '100 days') - now())::float8,
	case when paused_until > now() then to_json(paused_until) #>> '{}' else '' end,
	case when paused_until > now() then coalesce(pause_reason, '') else '' end
from {queues}
where queue = $1
for no key update`

const readLanePauseSQL = `
select extract(epoch from least(greatest(paused_until, now()), now() + interval '100 days') - now())::float8,
	case when paused_until > now() then to_json(paused_until) #>> '{}' else '' end,
	case when paused_until > now() then coalesce(pause_reason, '') else '' end
from {lanes}
where queue = $1 and lane = $2`

// lockPause reads the pause of a queue, or of a lane of it. Either way it locks the row of the queue first: that puts
// operators and Steps in order, for the rows of lanes too.
func (s Schema) lockPause(ctx context.Context, tx pgx.Tx, queue, lane string) (Pause, error) {
	p, err := scanPause(tx.QueryRow(ctx, s.sql(lockQueuePauseSQL), queue))
	if err == nil && lane != "" {
		p, err = scanPause(tx.QueryRow(ctx, s.sql(readLanePauseSQL), queue, lane))
	}
	return p, err
}

func scanPause(row pgx.Row) (p Pause, err error) {
	var left float64
	err = row.Scan(&left, &p.Until, &p.Reason)
	if errors.Is(err, pgx.ErrNoRows) {
		return Pause{}, nil
	}
	p.For = duration(left)
	return p, err
}

const unknownSQL = `
select not exists (select from {queues} where queue = $1 and epoch > 0)
	and not exists (select from {jobs} where queue = $1 and state = 'pending')
	and not exists (select from {jobs} where queue = $1 and state = 'running')
	and not exists (select from {jobs} where queue = $1 and state in ('done', 'dead'))`

func (s Schema) unknown(ctx context.Context, tx pgx.Tx, queue string) (unknown bool, err error) {
	err = tx.QueryRow(ctx, s.sql(unknownSQL), queue).Scan(&unknown)
	return unknown, err
}

func checkPause(queue, lane string) error {
	if err := CheckQueue(queue); err != nil || lane == "" {
		return err
	}
	return checkText("lane", lane)
}

// MaxReason is how many bytes of a reason are kept: the rows of queues are written all the time.
const MaxReason = 1000

func shortReason(text string) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
	if len(text) <= MaxReason {
		return text
	}
	return strings.ToValidUTF8(text[:MaxReason-len("…")], "") + "…"
}
