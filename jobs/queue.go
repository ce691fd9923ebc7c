package jobs

import (
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// ErrLeaseLost means that another holds the queue now: nothing was recorded and nothing claimed.
var ErrLeaseLost = errors.New("lease lost")

// Holder is one connection of one child: the one that may work on a queue while its lease lasts.
type Holder struct {
	Supervisor   string // 128 random bits, made at the supervisor's start
	N            int    // the child: its supervisor's n-th for this queue
	C            int    // the child's connection; grows with each
	Host         string
	BootID       string // with Host, PIDNamespace, PID and ProcessStart: the process, for ever
	PIDNamespace string
	PID          int
	ProcessStart int64
}

// Name is host/pid, for people.
func (h Holder) Name() string { return fmt.Sprintf("%s/%d", h.Host, h.PID) }

// before reports whether h is an earlier child, or an earlier connection of the same child, than o.
func (h Holder) before(o Holder) bool { return h.N < o.N || h.N == o.N && h.C < o.C }

// Limits are how many attempts a job has where its row does not say.
type Limits struct {
	MaxAttempts int            // the worker's
	ByName      map[string]int // per job name
}

// Queue is a queue held by one connection under one epoch. It is for one goroutine.
type Queue struct {
	conn     *pgx.Conn
	schema   Schema
	name     string
	holder   string
	lockedBy string
	epoch    int64

	maxAttempts       int
	maxAttemptsByName string            // JSON
	statements        map[string]string // as written → with the names of the tables
}

// sql puts the names of the tables into a statement, once: a Step is sent thousands of times.
func (q *Queue) sql(statement string) string {
	named, ok := q.statements[statement]
	if !ok {
		named = q.schema.sql(statement)
		q.statements[statement] = named
	}
	return named
}

// Epoch is the number of the lease. It only grows.
func (q *Queue) Epoch() int64 { return q.epoch }

// Ref names one attempt of a job.
type Ref struct {
	ID      int64
	Attempt int
}

// Claimed is a job that is now running under our epoch.
type Claimed struct {
	Job
	Counted   int // attempts that count, this one included
	Throttled int // attempts the API has refused
	Limit     int // with so many that count it is dead, if it fails

	// Suspect: it was in company when a process died, and has used up its attempts. It must be the only job of the
	// queue that is claimed, so that its next death is nobody else's.
	Suspect bool
}

// Ref names the attempt that was claimed.
func (c Claimed) Ref() Ref { return Ref{c.ID, c.Attempt} }

// Kind is how an attempt ended.
type Kind string

// The kinds of end.
const (
	KindDone      Kind = "done"
	KindDead      Kind = "dead"      // no later attempt can help
	KindFail      Kind = "fail"      // again after Delay, or dead if that was the last attempt
	KindCompany   Kind = "company"   // its process died while others ran too: as Fail, but never dead
	KindExcused   Kind = "excused"   // we stopped it: does not count
	KindThrottled Kind = "throttled" // the API said later: does not count
)

// Ended is the end of one attempt.
type Ended struct {
	Ref
	Kind    Kind
	Delay   time.Duration // until the next attempt; 0: the job keeps its place in the queue
	Started time.Time     // of the handler; zero: it was not started, or nobody knows when
	Error   string        // "": none, and an older one stays unless the job is done
}

// IsDataError reports whether err means that Postgres refused the data of one job (a constraint, a trigger, a
// value out of range), so that the same statement will fail again until that job is left out.
func IsDataError(err error) bool {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || len(pg.Code) < 2 {
		return false
	}
	class := pg.Code[:2]
	return class == "22" || class == "23" || class == "P0"
}

// seconds is how durations cross to Postgres: only its own now() is a wall clock there.
func seconds(d time.Duration) float64 { return d.Seconds() }

// duration bounds what Postgres answers, so that no arithmetic of ours can overflow.
func duration(s float64) time.Duration {
	const most = 100 * 24 * time.Hour
	if !(s < most.Seconds()) {
		return most
	}
	return time.Duration(s * float64(time.Second))
}
