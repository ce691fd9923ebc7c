package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Job is a claimed job as its handler sees it.
type Job struct {
	ID       int64
	Queue    string
	Name     string
	Args     json.RawMessage // as Postgres prints it: every digit of every number is there
	Lane     string
	Attempt  int // 1 for the first start
	Requeues int // how often a person gave it a new life
}

// Handler does one job. A nil error means done; a plain error means try again after a back-off, until
// max_attempts; Permanent, RetryAfter and Throttled say something else. The context ends at the job's
// timeout, when the job is cancelled and when the process must leave.
type Handler func(ctx context.Context, job Job) error

// Handlers are a program's own handlers: queue, then job name.
type Handlers map[string]map[string]Handler

// Handle makes a Handler of a function that takes the job's args decoded from JSON into A. Args that do not
// decode make the job dead at once: no later attempt could read them.
func Handle[A any](do func(ctx context.Context, args A) error) Handler {
	return func(ctx context.Context, job Job) error {
		var args A
		if err := json.Unmarshal(job.Args, &args); err != nil {
			return Permanent(fmt.Errorf("decode args of %s: %w", job.Name, err))
		}
		return do(ctx, args)
	}
}

// Permanent marks err as one that no later attempt can mend: the job is dead at once.
func Permanent(err error) error { return &permanent{err} }

// RetryAfter marks err as a failure whose next attempt comes after d, not after the usual back-off.
func RetryAfter(d time.Duration, err error) error { return &retryAfter{err, d} }

// Scope is what has to wait when an API refuses: all of the queue, or the lane of the job that was refused.
type Scope string

// The scopes. ScopeOfFile stands for what the worker's pause_scope says.
const (
	ScopeOfFile Scope = ""
	ScopeQueue  Scope = "queue"
	ScopeLane   Scope = "lane"
)

// Throttled says that the API refused because it was called too often, and to come back after d (0: it did
// not say). The queue pauses that long, or the lane of the job if the worker's pause_scope is "lane"; the attempt
// does not count. Package refusal reads d from what the API answered.
func Throttled(d time.Duration, err error) error { return &throttled{err, d, ScopeOfFile} }

// ThrottledIn is Throttled for an API that says whom its refusal is for.
func ThrottledIn(scope Scope, d time.Duration, err error) error { return &throttled{err, d, scope} }

type permanent struct{ error }

type retryAfter struct {
	error
	after time.Duration
}

type throttled struct {
	error
	after time.Duration
	scope Scope
}

func (e *permanent) Unwrap() error  { return e.error }
func (e *retryAfter) Unwrap() error { return e.error }
func (e *throttled) Unwrap() error  { return e.error }

// IsPermanent reports whether err says that the job is dead at once.
func IsPermanent(err error) bool {
	var e *permanent
	return errors.As(err, &e)
}

// AsRetryAfter reports whether err says when to try again, and when.
func AsRetryAfter(err error) (time.Duration, bool) {
	var e *retryAfter
	if errors.As(err, &e) {
		return e.after, true
	}
	return 0, false
}

// AsThrottled reports whether err says that the API was called too often, how long to pause (0: not said), and what.
func AsThrottled(err error) (time.Duration, Scope, bool) {
	var e *throttled
	if errors.As(err, &e) {
		return e.after, e.scope, true
	}
	return 0, "", false
}
