package jobs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// New is a job to enqueue.
type New struct {
	Queue       string        // 1 to 58 of a-z 0-9 . - _
	Name        string        // 1 to 255 bytes
	Args        any           // see Enqueue. Defaults to {}
	Lane        string        // at most 255 bytes. Defaults to DefaultLane
	RunAt       time.Time     // not before this time. Defaults to now
	In          time.Duration // or: not before this long after the database's now(), the start of the transaction
	UniqueKey   string        // at most 255 bytes. Defaults to none
	MaxAttempts int           // 1 to 1,000,000. Defaults to what the worker's file says
}

// Enqueued is what became of a New.
type Enqueued struct {
	ID       int64 `json:"id"`
	Existing bool  `json:"existing"` // a pending or running job of the queue has this unique key: ID is that job
}

// DB is what pgx.Tx, *pgx.Conn and *pgxpool.Pool share. In a transaction a job exists if the transaction commits.
type DB interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// Enqueue stores one job in the tables that db's search_path points to; see Schema.Enqueue.
func Enqueue(ctx context.Context, db DB, job New) (Enqueued, error) {
	return Schema("").Enqueue(ctx, db, job)
}

// EnqueueMany stores jobs in the tables that db's search_path points to; see Schema.EnqueueMany.
func EnqueueMany(ctx context.Context, db DB, jobs []New) ([]Enqueued, error) {
	return Schema("").EnqueueMany(ctx, db, jobs)
}

// Enqueue stores one job, in one round trip. A job that breaks a rule is refused with ErrInvalid before that.
//
// Args of type string, []byte or json.RawMessage are JSON text and stored digit for digit; any other value goes
// through encoding/json. CheckArgs tells what is refused.
//
// A unique key covers the pending and running jobs of a queue: if one has the key, nothing is stored and its id
// comes back with Existing set. If another transaction is just storing the same key, Enqueue waits for its end.
// At isolation level repeatable read or above that ends in a serialization failure (40001), which the caller repeats
// as always.
func (s Schema) Enqueue(ctx context.Context, db DB, job New) (Enqueued, error) {
	return s.enqueueOne(ctx, queryPgx(db), job)
}

// EnqueueMany stores all jobs or none, in one statement. The answers are in the order of jobs, and so are the ids of
// those without a unique key. Of two jobs with the same key the first is stored. An error about one job names its
// index.
func (s Schema) EnqueueMany(ctx context.Context, db DB, jobs []New) ([]Enqueued, error) {
	return s.enqueue(ctx, queryPgx(db), jobs, manyLabel)
}

func manyLabel(i int) string { return fmt.Sprintf("enqueue: jobs[%d]", i) }

func (s Schema) enqueueOne(ctx context.Context, db query, job New) (Enqueued, error) {
	got, err := s.enqueue(ctx, db, []New{job}, func(int) string { return "enqueue" })
	if err != nil {
		return Enqueued{}, err
	}
	return got[0], nil
}

func (s Schema) enqueue(ctx context.Context, db query, jobs []New, label func(i int) string) ([]Enqueued, error) {
	open := make([]record, len(jobs))
	for i, job := range jobs {
		var err error
		if open[i], err = newRecord(i, job); err != nil {
			return nil, fmt.Errorf("%s: %w", label(i), invalid{err})
		}
	}
	answers := make([]Enqueued, len(jobs))
	for try := 0; len(open) > 0; try++ {
		if try == maxTries {
			return nil, fmt.Errorf("%s: the job with unique key %q cannot be seen", label(open[0].I), open[0].UniqueKey)
		}
		found, err := s.store(ctx, db, open)
		if err != nil {
			return nil, fmt.Errorf("enqueue: %w", err)
		}
		if open, err = found.answer(open, answers); err != nil {
			return nil, fmt.Errorf("enqueue: %w", err)
		}
	}
	return answers, nil
}

// maxTries bounds the second looks at a unique key. Each takes one more transaction that stored or ended a job of
// that key in between; so many in a row mean a job that the caller is not allowed to see.
const maxTries = 10

// record is a New as the statement takes it.
type record struct {
	I           int     `json:"i"`
	Queue       string  `json:"queue"`
	Name        string  `json:"name"`
	Args        string  `json:"args"`
	Lane        string  `json:"lane"`
	RunAt       string  `json:"run_at,omitempty"`
	Delay       float64 `json:"delay"`
	UniqueKey   string  `json:"unique_key,omitempty"`
	MaxAttempts int     `json:"max_attempts,omitempty"`
}

func newRecord(i int, job New) (record, error) {
	args, err := argsText(job.Args)
	if err != nil {
		return record{}, fmt.Errorf("args: %w", err)
	}
	r := record{
		I: i, Queue: job.Queue, Name: job.Name, Args: args, Lane: cmp.Or(job.Lane, DefaultLane),
		Delay: job.In.Seconds(), UniqueKey: job.UniqueKey, MaxAttempts: job.MaxAttempts,
	}
	if !job.RunAt.IsZero() {
		r.RunAt = job.RunAt.UTC().Format(time.RFC3339Nano)
	}
	if err := errors.Join(CheckQueue(r.Queue), checkText("name", r.Name), checkText("lane", r.Lane)); err != nil {
		return record{}, err
	}
	if r.UniqueKey != "" {
		if err := checkText("unique key", r.UniqueKey); err != nil {
			return record{}, err
		}
	}
	year := job.RunAt.UTC().Year()
	switch {
	case job.In < 0:
		return record{}, fmt.Errorf("in %v: must not be negative", job.In)
	case job.In > 0 && r.RunAt != "":
		return record{}, errors.New("run at and in: give one of them")
	case year < 1 || year > 294275: // Postgres ends with 294276; Go's zero time is in year 1
		return record{}, fmt.Errorf("run at %s: must be in the years 1 to 294275", r.RunAt)
	case r.MaxAttempts < 0 || r.MaxAttempts > maxMaxAttempts:
		return record{}, fmt.Errorf("max attempts %d: must be 1 to %d", r.MaxAttempts, maxMaxAttempts)
	}
	return r, nil
}

// A conflict does nothing and locks nothing: the job that has the key may be running, and its outcome must not wait
// for the caller's transaction. The statement's snapshot is older than its wait for another transaction, so a winner
// that committed meanwhile is neither stored nor found: then the caller looks again.
const enqueueSQL = `
with new as (
	select i, queue, name, args::jsonb as args, lane, coalesce(run_at, now() + delay * interval '1 s') as run_at,
		unique_key, max_attempts
	from json_to_recordset($1::json) as n(i int, queue text, name text, args text, lane text, run_at timestamptz,
		delay float8, unique_key text, max_attempts int)
), stored as (
	insert into {jobs} (queue, name, args, lane, run_at, unique_key, max_attempts)
	select queue, name, args, lane, run_at, unique_key, max_attempts
	from new
	order by i
	on conflict (queue, unique_key) where state in ('pending', 'running') and unique_key is not null do nothing
	returning id, queue, unique_key
)
select id, queue, coalesce(unique_key, ''), false from stored
union all
select j.id, j.queue, j.unique_key, true
from new n
join {jobs} j on j.queue = n.queue and j.unique_key = n.unique_key
where j.state in ('pending', 'running')`

func (s Schema) store(ctx context.Context, db query, open []record) (stored, error) {
	found := stored{made: map[uniqueKey]int64{}, existing: map[uniqueKey]int64{}}
	list, err := json.Marshal(open)
	if err != nil {
		return found, err
	}
	rows, err := db(ctx, s.sql(enqueueSQL), string(list))
	if err != nil {
		return found, err
	}
	defer rows.Close()
	for rows.Next() {
		var id int64
		var key uniqueKey
		var existing bool
		if err := rows.Scan(&id, &key.queue, &key.key, &existing); err != nil {
			return found, err
		}
		found.add(id, key, existing)
	}
	return found, rows.Err()
}

type uniqueKey struct{ queue, key string }

// stored is what one run of the statement said.
type stored struct {
	keyless        []int64 // ids of the new jobs without a unique key
	made, existing map[uniqueKey]int64
}

func (s *stored) add(id int64, key uniqueKey, existing bool) {
	switch {
	case existing:
		s.existing[key] = id
	case key.key == "":
		s.keyless = append(s.keyless, id)
	default:
		s.made[key] = id
	}
}

// answer fills in the answers of open and returns those whose key was taken by a job that could not be seen yet.
// Ids were given in the order of the list, but rows come back in none.
func (s *stored) answer(open []record, answers []Enqueued) ([]record, error) {
	slices.Sort(s.keyless)
	var left []record
	for _, r := range open {
		key := uniqueKey{r.Queue, r.UniqueKey}
		switch {
		case r.UniqueKey == "":
			if len(s.keyless) == 0 {
				return nil, errors.New("fewer rows were stored than sent: a trigger on the table drops them")
			}
			answers[r.I] = Enqueued{ID: s.keyless[0]}
			s.keyless = s.keyless[1:]
		case s.made[key] != 0:
			answers[r.I] = Enqueued{ID: s.made[key]}
			s.existing[key] = s.made[key] // for the next of this call with the same key
			delete(s.made, key)
		case s.existing[key] != 0:
			answers[r.I] = Enqueued{ID: s.existing[key], Existing: true}
		default:
			left = append(left, r)
		}
	}
	return left, nil
}
