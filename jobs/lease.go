package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Bid is what a child brings to acquire a queue.
type Bid struct {
	Holder   Holder
	TTL      time.Duration // of the lease
	Limits   Limits
	Settings any   // stored as JSON, for whoever looks from outside
	Epoch    int64 // under which this process last held the queue; 0: it never did
	Held     []Ref // what it then claimed and has no acknowledged end for
	Free     *Seen // the lease it knows to be dead though it has not run out
	// Deaths are the causes of the deaths of earlier children of one supervisor, DeathsOf: "" is that of Holder.
	Deaths   []Death
	DeathsOf string
	// Backoff is the delay before the next attempt of a job of which so many attempts count.
	Backoff func(counted int) time.Duration
}

// Seen identifies one renewal of a lease: as long as it stays the same its holder has not been heard of.
type Seen struct {
	Epoch     int64
	ExpiresAt string // as Postgres prints it
}

// Death is how a child ended.
type Death struct {
	N     int    `json:"n"`     // the child: its supervisor's n-th for the queue
	Cause string `json:"cause"` // "child killed by signal 9", "exit status 3"
	Ours  bool   `json:"ours"`  // its supervisor ended it: what it was running is excused
}

// Acquired is a queue that is ours now.
type Acquired struct {
	*Queue
	Rates                   // as stored, but for EmptyFor, which has grown since, and Waiting, which has what died
	Settled   time.Duration // since the quotas were stored
	Lanes     LaneRates
	Kept      []int64 // of Bid.Held: still ours, now under the new epoch
	Recovered []Ended // what others left running
	Before    Holder  // it was taken over from; zero: it was free
}

// LaneRates is what is known of the starts of each lane.
type LaneRates struct {
	EmptyFor time.Duration            // since the bucket of every lane was empty
	Turns    map[string]time.Duration // of lanes whose bucket was empty later: since when
}

// HeldError says that another holds the queue.
type HeldError struct {
	Queue     string
	Holder    Holder
	Seen      Seen
	TTL       time.Duration // of its lease
	ExpiresIn time.Duration // until its lease ends, if it is not renewed
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("queue %s: held by %s for at most %s more", e.Queue, e.Holder.Name(), e.ExpiresIn.Round(time.Second))
}

// Acquire makes the queue ours under a new epoch and brings back what earlier holders left running, all in one
// transaction. What this process itself holds moves to the new epoch. If another holds the queue, the error is a
// *HeldError.
func (s Schema) Acquire(ctx context.Context, conn *pgx.Conn, queue string, bid Bid) (*Acquired, error) {
	var acquired *Acquired
	// Read committed: each statement needs a snapshot of its own, taken after the wait for the row of the queue.
	err := pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) (err error) {
		acquired, err = s.acquire(ctx, tx, queue, bid)
		return err
	})
	var held *HeldError
	if errors.As(err, &held) {
		return nil, held
	}
	if err != nil {
		return nil, fmt.Errorf("acquire queue %s: %w", queue, err)
	}
	acquired.conn = conn
	return acquired, nil
}

func (s Schema) acquire(ctx context.Context, tx pgx.Tx, queue string, bid Bid) (*Acquired, error) {
	before, err := s.lockLease(ctx, tx, queue)
	if err != nil {
		return nil, err
	}
	if !before.yieldsTo(bid) {
		return nil, before.held()
	}
	a, err := s.take(ctx, tx, queue, bid)
	if err != nil {
		return nil, err
	}
	if err := a.laneTurns(ctx, tx); err != nil {
		return nil, err
	}
	a.Before = before.holder
	mine := before.epochsOf(bid)
	if a.Kept, err = a.move(ctx, tx, bid.Held, mine); err != nil {
		return nil, fmt.Errorf("keep running jobs: %w", err)
	}
	a.Recovered, err = a.recover(ctx, tx, a.Kept, func(j stray, company bool) Ended {
		return before.judge(j, company, mine, bid)
	})
	return a, err
}

const makeQueueSQL = `insert into {queues} (queue) values ($1) on conflict do nothing`

const lockLeaseSQL = `
select epoch, supervisor is null, coalesce(supervisor, ''), coalesce(n, 0), coalesce(c, 0), coalesce(host, ''),
	coalesce(boot_id, ''), coalesce(pid_namespace, ''), coalesce(pid, 0), coalesce(process_start, 0),
	expires_at::text, expires_at < now(), extract(epoch from ttl)::float8,
	extract(epoch from greatest(least(expires_at, now() + interval '1 day'), now()) - now())::float8
from {queues}
where queue = $1
for no key update`

// lease is the row of a queue as an acquire finds it.
type lease struct {
	queue     string
	seen      Seen
	free      bool // released, or never held
	expired   bool
	ttl       float64
	expiresIn float64
	holder    Holder // the last one
}

// lockLease makes the row of the queue if it is missing, waits for it and keeps it until the transaction ends.
func (s Schema) lockLease(ctx context.Context, tx pgx.Tx, queue string) (lease, error) {
	if _, err := tx.Exec(ctx, s.sql(makeQueueSQL), queue); err != nil {
		return lease{}, fmt.Errorf("make row: %w", err)
	}
	l := lease{queue: queue}
	h := &l.holder
	err := tx.QueryRow(ctx, s.sql(lockLeaseSQL), queue).Scan(&l.seen.Epoch, &l.free, &h.Supervisor, &h.N, &h.C, &h.Host,
		&h.BootID, &h.PIDNamespace, &h.PID, &h.ProcessStart, &l.seen.ExpiresAt, &l.expired, &l.ttl, &l.expiresIn)
	if err != nil {
		return lease{}, fmt.Errorf("lock row: %w", err)
	}
	return l, nil
}

// yieldsTo is the whole rule of who may take a queue; anything looser lets two hold it.
func (l lease) yieldsTo(b Bid) bool {
	return l.free || l.expired ||
		l.holder.Supervisor == b.Holder.Supervisor && l.holder.before(b.Holder) ||
		b.Free != nil && *b.Free == l.seen
}

func (l lease) held() *HeldError {
	return &HeldError{Queue: l.queue, Holder: l.holder, Seen: l.seen, TTL: duration(l.ttl), ExpiresIn: duration(l.expiresIn)}
}

// epochsOf are the epochs under which the bidding process itself may have rows: the one it knows, and the one of
// an acquire whose reply it never got. None if another held the queue in between: that one brought all back.
func (l lease) epochsOf(b Bid) []int64 {
	if l.free || l.holder.Supervisor != b.Holder.Supervisor || l.holder.N != b.Holder.N {
		return []int64{}
	}
	return []int64{b.Epoch, l.seen.Epoch}
}

const takeSQL = `
update {queues}
set epoch = epoch + 1, supervisor = $2, n = $3, c = $4, host = $5, boot_id = $6, pid_namespace = $7, pid = $8,
	process_start = $9, ttl = $10::float8 * interval '1 s', expires_at = now() + $10::float8 * interval '1 s',
	-- After a death nobody knows the last start: the buckets are empty now, and all that may have started since the
	-- last Step is taken to have. That is always safe.
	empty_at = case when supervisor is null then empty_at else now() end,
	lanes_empty_at = case when supervisor is null then lanes_empty_at else now() end,
	waiting = least(greatest(waiting, 0), 1000) + case when supervisor is null then 0 else (
		select least(count(*), 1000)
		from {jobs} j
		where j.state = 'running' and j.queue = $1 and j.locked_at = settled_at) end,
	settings = $11
where queue = $1
returning epoch, holder,
	-- Times as how long ago they were, bounded: infinity is an error in arithmetic.
	extract(epoch from now() - greatest(least(greatest(empty_at, least(paused_until, now())), now()), now() - interval '100 days'))::float8,
	extract(epoch from now() - greatest(least(lanes_empty_at, now()), now() - interval '100 days'))::float8,
	extract(epoch from now() - greatest(least(settled_at, now()), now() - interval '100 days'))::float8,
	quotas, waiting, lane, lane_left`

func (s Schema) take(ctx context.Context, tx pgx.Tx, queue string, b Bid) (*Acquired, error) {
	settings, err := json.Marshal(b.Settings)
	if err != nil {
		return nil, fmt.Errorf("encode settings: %w", err)
	}
	byName, err := json.Marshal(b.Limits.ByName)
	if err != nil {
		return nil, fmt.Errorf("encode limits: %w", err)
	}
	h := b.Holder
	q := &Queue{
		schema: s, name: queue, lockedBy: h.Name(), maxAttempts: b.Limits.MaxAttempts, maxAttemptsByName: string(byName),
		statements: map[string]string{},
	}
	a := &Acquired{Queue: q}
	var empty, lanesEmpty, settled float64
	err = tx.QueryRow(ctx, s.sql(takeSQL), queue, h.Supervisor, h.N, h.C, h.Host, h.BootID, h.PIDNamespace, h.PID,
		h.ProcessStart, seconds(b.TTL), string(settings)).Scan(&q.epoch, &q.holder, &empty, &lanesEmpty, &settled, &a.Quotas, &a.Waiting, &a.Lane,
		&a.LaneLeft)
	if err != nil {
		return nil, fmt.Errorf("take row: %w", err)
	}
	a.EmptyFor, a.Lanes.EmptyFor, a.Settled = duration(empty), duration(lanesEmpty), duration(settled)
	return a, nil
}

// The longest interval between two starts of a lane is under an hour. A bucket was empty at the end of a pause too.
const laneTurnsSQL = `
select lane, extract(epoch from now() - least(greatest(empty_at, paused_until), now()))::float8
from {lanes}
where queue = $1 and greatest(empty_at, paused_until) > now() - interval '1 hour'`

// laneTurns reads when the buckets of lanes were empty, as the last release left it.
func (a *Acquired) laneTurns(ctx context.Context, tx pgx.Tx) error {
	rows, err := tx.Query(ctx, a.sql(laneTurnsSQL), a.name)
	if err != nil {
		return fmt.Errorf("read turns of lanes: %w", err)
	}
	if a.Lanes.Turns, err = durations(rows); err != nil {
		return fmt.Errorf("read turns of lanes: %w", err)
	}
	return nil
}
