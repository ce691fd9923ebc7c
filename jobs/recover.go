package jobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// A row that somebody has locked is not waited for: an operator's lock must not stop the queue. The job counts
// as lost to this process then, and Sweep finds the row later.
//
// locked_at changes a little: the acquire has taken it into account that the job may have started since the last Step,
// and another one must not do so again.
const moveSQL = `
update {jobs} j
set epoch = $1, locked_at = locked_at - interval '1 microsecond'
from (
	select r.ctid as place
	from unnest($2::bigint[], $3::int[]) as h(id, attempt)
	join {jobs} r on r.id = h.id
	where r.attempts = h.attempt and r.epoch = any($4)
	for no key update of r skip locked
) h
where j.ctid = h.place
returning j.id`

// move brings what this process holds from its last epochs to the new one, and returns what it could.
func (q *Queue) move(ctx context.Context, tx pgx.Tx, held []Ref, epochs []int64) ([]int64, error) {
	if len(held) == 0 || len(epochs) == 0 {
		return nil, nil
	}
	var kept []int64
	_, err := tolerate(ctx, tx, len(held), func(tx pgx.Tx, from, to int) error {
		ids, attempts := split(held[from:to])
		rows, err := tx.Query(ctx, q.sql(moveSQL), q.epoch, ids, attempts, epochs)
		if err != nil {
			return err
		}
		moved, err := pgx.CollectRows(rows, pgx.RowTo[int64])
		kept = append(kept, moved...)
		return err
	})
	return kept, err
}

// tolerate does something to n rows at once or, if Postgres refuses the data of one, to each by itself, leaving out
// those that are refused: one bad row must not keep a queue from being acquired. It returns which were refused.
func tolerate(ctx context.Context, tx pgx.Tx, n int, do func(tx pgx.Tx, from, to int) error) (refused map[int]bool, err error) {
	err = pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error { return do(tx, 0, n) })
	if !IsDataError(err) {
		return nil, err
	}
	refused = map[int]bool{}
	for i := range n {
		err := pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error { return do(tx, i, i+1) })
		if err != nil && !IsDataError(err) {
			return nil, err
		}
		refused[i] = err != nil
	}
	return refused, nil
}

// stray is a running row that nobody works on.
type stray struct {
	Ref
	counted int
	epoch   int64
}

const straysSQL = `
select id, attempts, attempts - excused, epoch
from {jobs}
where queue = $1 and state = 'running' and not (epoch = $2 and id = any($3::bigint[]))
for no key update skip locked`

// recover ends every running row of the queue but those kept, the way judge says, and returns what it ended.
func (q *Queue) recover(ctx context.Context, tx pgx.Tx, kept []int64, judge func(j stray, company bool) Ended) ([]Ended, error) {
	rows, err := tx.Query(ctx, q.sql(straysSQL), q.name, q.epoch, notNull(kept))
	if err != nil {
		return nil, fmt.Errorf("find running jobs: %w", err)
	}
	strays, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (j stray, err error) {
		return j, row.Scan(&j.ID, &j.Attempt, &j.counted, &j.epoch)
	})
	if err != nil || len(strays) == 0 {
		return nil, err
	}
	ended, epochs := make([]Ended, len(strays)), make([]int64, len(strays))
	for i, j := range strays {
		ended[i], epochs[i] = judge(j, len(strays) > 1), j.epoch
	}
	refused, err := tolerate(ctx, tx, len(ended), func(tx pgx.Tx, from, to int) error {
		_, err := tx.Exec(ctx, q.sql(recordSQL), q.recordArgs(ended[from:to], epochs[from:to])...)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("bring back running jobs: %w", err)
	}
	recovered := ended[:0]
	for i, e := range ended {
		if !refused[i] {
			recovered = append(recovered, e)
		}
	}
	return recovered, nil
}

// judge says how the attempt of a stray ended, from who held the queue and what became of it.
func (l lease) judge(j stray, company bool, mine []int64, b Bid) Ended {
	if slices.Contains(mine, j.epoch) {
		// Claimed by a Step of ours whose reply was lost: nobody started it.
		return Ended{Ref: j.Ref, Kind: KindExcused}
	}
	cause, ours := l.cause(j, b)
	if ours {
		return Ended{Ref: j.Ref, Kind: KindExcused, Error: cause}
	}
	return died(j, company, cause, b.Backoff)
}

func (l lease) cause(j stray, b Bid) (cause string, ours bool) {
	if l.free || j.epoch != l.seen.Epoch {
		return leftRunning, false
	}
	if of := cmp.Or(b.DeathsOf, b.Holder.Supervisor); l.holder.Supervisor == of {
		for _, d := range b.Deaths {
			if d.N == l.holder.N {
				return d.Cause, d.Ours
			}
		}
		return leftRunning, false
	}
	if l.expired {
		return fmt.Sprintf("lease of %s expired", l.holder.Name()), false
	}
	return fmt.Sprintf("process %s is gone", l.holder.Name()), false
}

const leftRunning = "left running by an earlier holder of the queue"

// died is the end of an attempt whose process died. With others beside it nobody knows which one was to blame.
func died(j stray, company bool, cause string, backoff func(int) time.Duration) Ended {
	kind := KindFail
	if company {
		kind = KindCompany
	}
	return Ended{Ref: j.Ref, Kind: kind, Delay: backoff(j.counted), Error: cause}
}

const holdSQL = `
select true
from {queues}
where queue = $1 and epoch = $2 and holder = $3
for no key update`

// What was known of a lane is of no use once its pause has ended and its bucket has been full for long.
const forgetLanesSQL = `
delete from {lanes}
where queue = $1 and paused_until <= now() and empty_at < now() - interval '1 hour'`

// Sweep brings back running rows of the queue that are not in held: those an acquire had to skip because
// somebody had them locked, and those somebody inserted as running. And it tidies up what is known of lanes.
func (q *Queue) Sweep(ctx context.Context, held []Ref, backoff func(counted int) time.Duration) ([]Ended, error) {
	var recovered []Ended
	err := pgx.BeginTxFunc(ctx, q.conn, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		var ours bool
		err := tx.QueryRow(ctx, q.sql(holdSQL), q.name, q.epoch, q.holder).Scan(&ours)
		if errors.Is(err, pgx.ErrNoRows) {
			return ErrLeaseLost
		}
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, q.sql(forgetLanesSQL), q.name); err != nil {
			return err
		}
		ids, _ := split(held)
		recovered, err = q.recover(ctx, tx, ids, func(j stray, company bool) Ended { return died(j, company, leftRunning, backoff) })
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("sweep queue %s: %w", q.name, err)
	}
	return recovered, nil
}
