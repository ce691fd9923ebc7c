package child

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"queuekeeper/jobs"
)

type unspeakable struct{}

func (unspeakable) Error() string { panic("no words") }

// Postgres takes no NUL and no half of a character, and nobody wants 50 MB in a row.
func TestErrorOfAnyTextIsStoredAndItsJobGoesOn(t *testing.T) {
	const large = 50_000_000
	r := newRig(t)
	r.worker.MaxAttempts = 2
	for name, c := range map[string]struct {
		err  error
		want string // what it begins with
	}{
		"nul":     {errors.New("boom\x00x"), `boom\x00x`},
		"invalid": {errors.New("boom\xff"), `boom\xff`},
		"long":    {errors.New("x" + strings.Repeat("é", 6000)), "xééé"},
		"large":   {errors.New("begin" + strings.Repeat(".", large)), "begin..."},
		"empty":   {errors.New(""), "error without a text"},
		"panics":  {unspeakable{}, "error of type child.unspeakable whose Error method panics: no words"},
	} {
		r.handle(name, func(context.Context, jobs.Job) error { return c.err })
		r.exec(`insert into jobs (queue, name, args) values ('q', $1, jsonb_build_object('want', $2::text))`, name, c.want)
	}
	r.start()
	r.until(`select bool_and(state = 'dead') from jobs`)
	r.want(`select concat_ws(' ', min(attempts), max(attempts), max(excused)) from jobs`, "2 2 0")
	r.want(`select coalesce(string_agg(name || ': ' || left(last_error, 100), ', '), '') from jobs
		where not starts_with(last_error, args ->> 'want')`, "")
	r.want(`select (max(octet_length(last_error)) < 10000)::text from jobs`, "true")
	if text := value[string](r, `select last_error from jobs where name = 'long'`); !utf8.ValidString(text) || !strings.Contains(text, "bytes cut]") {
		t.Errorf("last_error of the long one: got %q, want valid text with the mark of a cut", text)
	}
	for _, code := range []string{"22021", "22P05"} {
		if r.log.has(code) {
			t.Errorf("log: got SQLSTATE %s in it, want none:\n%.5000s", code, r.log)
		}
	}
}

// The seventieth failure waits no longer than the tenth.
func TestJobOfManyAttemptsWaitsWithinTheMost(t *testing.T) {
	r := newRig(t)
	r.handle("fail", func(context.Context, jobs.Job) error { return errors.New("no luck") })
	r.exec(`insert into jobs (queue, name, attempts, max_attempts) values ('q', 'fail', 70, 100)`)
	r.start()
	r.until(`select attempts = 71 and state = 'pending' from jobs`)
	waits := value[float64](r, `select extract(epoch from run_at - finished_at)::float8 from jobs`)
	if most := r.set.Times.RetryMax.Seconds(); waits < most/2 || waits > most {
		t.Errorf("delay after 71 attempts: got %.3fs, want between half and all of %.0fs", waits, most)
	}
	if r.log.has("22008") {
		t.Errorf("log: got a time out of range in it, want none:\n%s", r.log)
	}
}

// Of the worker's twenty attempts this job has one.
func TestRowsOwnMaxAttemptsDecidesAtATimeoutToo(t *testing.T) {
	r := newRig(t)
	r.worker.Timeout = 50 * time.Millisecond
	r.handle("slow", func(ctx context.Context, _ jobs.Job) error { <-ctx.Done(); return ctx.Err() })
	for _, most := range []int{1, 2} {
		r.exec(`insert into jobs (queue, name, max_attempts) values ('q', 'slow', $1)`, most)
	}
	r.start()
	r.until(`select bool_and(state = 'dead') from jobs`)
	r.want(`select string_agg(concat_ws(' ', attempts, excused), ', ' order by id) from jobs`, "1 0, 2 0")
	r.want(`select min(last_error) from jobs`, fmt.Sprintf("timed out after %v: context deadline exceeded", r.worker.Timeout))
}
