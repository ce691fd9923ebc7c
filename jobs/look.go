package jobs

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// State is where a job is in its life.
type State string

// The states. A retry is pending with a later run_at.
const (
	Pending State = "pending"
	Running State = "running"
	Done    State = "done"
	Dead    State = "dead"
)

// checkState reports whether s is one of the states.
func checkState(s State) error {
	switch s {
	case Pending, Running, Done, Dead:
		return nil
	}
	return fmt.Errorf("state %q: must be pending, running, done or dead", cut(string(s)))
}

// DefaultListed is how many jobs List returns when the Filter does not say.
const DefaultListed = 50

// Filter says which jobs to list. The zero Filter is the newest of all.
type Filter struct {
	Queue string // "": any
	Name  string // "": any
	Lane  string // "": any
	State State  // "": any
	Below int64  // only ids below this: the last of the page before. 0: from the newest
	Limit int    // Defaults to DefaultListed
}

// Listed is a job in a list. Times are text in the session's time zone, with its offset: a row's time may be
// infinity, before Christ or in the year 294276, which no time.Time can say.
type Listed struct {
	ID          int64  `json:"id"`
	Queue       string `json:"queue"`
	Name        string `json:"name"`
	Lane        string `json:"lane"`
	State       State  `json:"state"`
	Attempts    int    `json:"attempts"`
	Excused     int    `json:"excused"`      // attempts that do not count
	MaxAttempts *int   `json:"max_attempts"` // nil: what the worker's file says
	RunAt       string `json:"run_at"`
	LastError   string `json:"last_error"` // its start
}

// The args of a job may be large: a list never reads them. to_json prints a time the same under every DateStyle.
const listSQL = `
select id, queue, name, lane, state, attempts, excused, max_attempts, to_json(run_at) #>> '{}',
	coalesce(left(last_error, 200), '')
from {jobs}
where ($1::text = '' or queue = $1)
	and ($2::text = '' or name = $2)
	and ($3::text = '' or state = $3)
	and ($4::text = '' or lane = $4)
	and ($5::bigint = 0 or id < $5)
order by id desc
limit $6`

// List returns jobs, newest first, without their args. A Filter that no job can meet is an ErrInvalid.
func (s Schema) List(ctx context.Context, db DB, f Filter) ([]Listed, error) {
	if err := f.check(); err != nil {
		return nil, fmt.Errorf("list jobs: %w", invalid{err})
	}
	limit := f.Limit
	if limit == 0 {
		limit = DefaultListed
	}
	rows, err := db.Query(ctx, s.sql(listSQL), f.Queue, f.Name, string(f.State), f.Lane, f.Below, limit)
	if err != nil {
		return nil, fmt.Errorf("list jobs: %w", err)
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Listed, error) {
		var l Listed
		err := row.Scan(&l.ID, &l.Queue, &l.Name, &l.Lane, &l.State, &l.Attempts, &l.Excused, &l.MaxAttempts,
			&l.RunAt, &l.LastError)
		return l, err
	})
	if err != nil {
		return nil, fmt.Errorf("list jobs: %w", err)
	}
	return list, nil
}

func (f Filter) check() error {
	var errs []error
	if f.Queue != "" {
		errs = append(errs, CheckQueue(f.Queue))
	}
	if f.Name != "" {
		errs = append(errs, checkText("name", f.Name))
	}
	if f.Lane != "" {
		errs = append(errs, checkText("lane", f.Lane))
	}
	if f.State != "" {
		errs = append(errs, checkState(f.State))
	}
	if f.Limit < 0 {
		errs = append(errs, fmt.Errorf("limit %d: must not be negative", f.Limit))
	}
	return errors.Join(errs...)
}

// Shown is everything the table knows of a job. Nil pointers are null; times are text, as in Listed.
type Shown struct {
	ID          int64   `json:"id"`
	Queue       string  `json:"queue"`
	Name        string  `json:"name"`
	Args        string  `json:"args"` // JSON text, every digit of it; null in the table is shown as {}
	Lane        string  `json:"lane"`
	State       State   `json:"state"`
	Attempts    int     `json:"attempts"`
	Excused     int     `json:"excused"`
	Throttled   int     `json:"throttled"`
	Requeues    int     `json:"requeues"`
	MaxAttempts *int    `json:"max_attempts"`
	RunAt       string  `json:"run_at"`
	LockedAt    *string `json:"locked_at"`
	LockedBy    *string `json:"locked_by"`
	Epoch       *int64  `json:"epoch"`
	StartedAt   *string `json:"started_at"`
	FinishedAt  *string `json:"finished_at"`
	LastError   *string `json:"last_error"`
	UniqueKey   *string `json:"unique_key"`
	CreatedAt   string  `json:"created_at"`
}

const showSQL = `
select id, queue, name, coalesce(args::text, '{}'), lane, state, attempts, excused, throttled, requeues, max_attempts,
	to_json(run_at) #>> '{}', to_json(locked_at) #>> '{}', locked_by, epoch, to_json(started_at) #>> '{}',
	to_json(finished_at) #>> '{}', last_error, unique_key, to_json(created_at) #>> '{}'
from {jobs}
where id = $1`

// Show returns everything about one job, or ErrNotFound.
func (s Schema) Show(ctx context.Context, db DB, id int64) (Shown, error) {
	rows, err := db.Query(ctx, s.sql(showSQL), id)
	if err != nil {
		return Shown{}, fmt.Errorf("show job %d: %w", id, err)
	}
	j, err := pgx.CollectExactlyOneRow(rows, func(row pgx.CollectableRow) (Shown, error) {
		var j Shown
		err := row.Scan(&j.ID, &j.Queue, &j.Name, &j.Args, &j.Lane, &j.State, &j.Attempts, &j.Excused,
			&j.Throttled, &j.Requeues, &j.MaxAttempts, &j.RunAt, &j.LockedAt, &j.LockedBy, &j.Epoch, &j.StartedAt,
			&j.FinishedAt, &j.LastError, &j.UniqueKey, &j.CreatedAt)
		return j, err
	})
	if errors.Is(err, pgx.ErrNoRows) {
		err = ErrNotFound
	}
	if err != nil {
		return Shown{}, fmt.Errorf("show job %d: %w", id, err)
	}
	return j, nil
}

// Index jobs_pending serves it: done and dead rows are not read.
const pendingSQL = `
select queue, count(*)
from {jobs}
where state = 'pending'
group by queue`

// PendingByQueue counts the pending jobs of each queue that has any, due or not.
func (s Schema) PendingByQueue(ctx context.Context, db DB) (map[string]int64, error) {
	counts := map[string]int64{}
	rows, err := db.Query(ctx, s.sql(pendingSQL))
	if err != nil {
		return nil, fmt.Errorf("count pending jobs: %w", err)
	}
	var queue string
	var n int64
	_, err = pgx.ForEachRow(rows, []any{&queue, &n}, func() error {
		counts[queue] = n
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("count pending jobs: %w", err)
	}
	return counts, nil
}
