package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"queuekeeper/internal/procs"
	"queuekeeper/internal/tryout"
	"queuekeeper/migrations"
)

// worker is a [[worker]] of the file, whose jobs go to the handlers of this binary.
type worker struct {
	queue       string
	concurrency int
	limits      string // lines of the file
	after       string // tables of the file, which must come last
}

// scene is one file of queues and the supervisors that run it, on a database of its own.
type scene struct {
	*rig
	folder, url string
	db          *pgx.Conn
	base        time.Time     // of the database: what offsets of jobs count from
	began       time.Duration // the same moment on the boot clock
	fail        context.CancelCauseFunc

	mu      sync.Mutex
	workers []worker
	changes map[string]int // of each queue: how often settings other than its limit were changed
	deaths  map[string]int // how often its child was killed
	active  *supervisor
	all     []*supervisor

	// What has happened to all queues; of one goroutine.
	switched reloaded // when limits were changed
	faults   int      // restarts of Postgres, or takeovers
}

// lead is how long a supervisor has to come up before the first job is due.
const lead = 2 * time.Second

func (r *rig) newScene(ctx context.Context, workers []worker) (s *scene, err error) {
	r.scenes++
	s = &scene{rig: r, workers: workers, changes: map[string]int{}, deaths: map[string]int{}}
	name := database(r.scenes)
	s.folder, s.url = filepath.Join(r.folder, name), r.postgres.URL(name)
	if err := os.Mkdir(s.folder, 0o755); err != nil {
		return nil, err
	}
	if err := r.createDatabase(ctx, name); err != nil {
		return nil, err
	}
	if s.db, err = pgx.Connect(ctx, s.url); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.db.Close(context.WithoutCancel(ctx))
		}
	}()
	if err := migrations.Up(ctx, s.db, "", migrations.Options{}); err != nil {
		return nil, err
	}
	if err := s.db.QueryRow(ctx, `select clock_timestamp()`).Scan(&s.base); err != nil {
		return nil, err
	}
	s.base, s.began = s.base.Add(lead), procs.BootClock()+lead
	return s, s.writeFile()
}

func database(scene int) string { return fmt.Sprintf("scene_%d", scene) }

// createDatabase drops that of the scene before: the more there are, the longer Postgres takes to come back from a crash.
func (r *rig) createDatabase(ctx context.Context, name string) error {
	db, err := pgx.Connect(ctx, r.postgres.URL("postgres"))
	if err != nil {
		return err
	}
	defer db.Close(context.WithoutCancel(ctx))
	before := database(r.scenes - 1)
	for _, statement := range []string{"drop database if exists " + before + " with (force)", "create database " + name, "checkpoint"} {
		if _, err := db.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

const enqueueSQL = `
insert into jobs (queue, name, args, lane, run_at)
select $1, $2, $3, $4, $5
from generate_series(1, $6::int)`

// enqueue adds jobs that are due at an offset. url is what they call; "": nothing.
func (s *scene) enqueue(ctx context.Context, queue, url, lane string, at time.Duration, n int) error {
	name, text := stampName, []byte("{}")
	if url != "" {
		var err error
		if text, err = json.Marshal(args{URL: url}); err != nil {
			return err
		}
		name = callName
	}
	_, err := s.db.Exec(ctx, enqueueSQL, queue, name, string(text), lane, s.base.Add(at), n)
	return err
}

func (s *scene) file() string { return filepath.Join(s.folder, "queues.toml") }

// lease is what the file says.
const lease = 2 * time.Second

// writeFile puts the file in place at once: whoever reads it meanwhile finds the old one. Callers hold mu.
func (s *scene) writeFile() error {
	var text strings.Builder
	fmt.Fprintf(&text, "lease = %q\nshutdown_timeout = \"10s\"\n", lease)
	for _, w := range s.workers {
		timeout := time.Minute + time.Duration(s.changes[w.queue])*time.Second
		fmt.Fprintf(&text, "\n[[worker]]\nqueue = %q\nconcurrency = %d\ntimeout = %q\n%s%s",
			w.queue, w.concurrency, timeout, w.limits, w.after)
	}
	next := s.file() + ".new"
	if err := os.WriteFile(next, []byte(text.String()), 0o644); err != nil {
		return err
	}
	return os.Rename(next, s.file())
}

// offset is how long the scene has been going on, by the clock its jobs are due by.
func (s *scene) offset() time.Duration { return procs.BootClock() - s.began }

// until waits until the scene has been going on for that long.
func (s *scene) until(ctx context.Context, offset time.Duration) error {
	if !tryout.Pause(ctx, offset-s.offset()) {
		return context.Cause(ctx)
	}
	return nil
}

// play runs a supervisor, does what there is to do meanwhile, side by side, and stops it. The context of what is done
// ends when a supervisor does that nobody has told to.
func (s *scene) play(ctx context.Context, do ...func(context.Context) error) error {
	working, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s.fail = cancel
	defer s.db.Close(context.WithoutCancel(ctx))
	first, err := s.start(ctx)
	if err != nil {
		return err
	}
	s.active = first
	var group sync.WaitGroup
	errs := make([]error, len(do))
	for i, f := range do {
		group.Go(func() {
			if errs[i] = f(working); errs[i] != nil {
				cancel(errs[i])
			}
		})
	}
	group.Wait()
	err = errors.Join(errs...)
	if err != nil {
		err = context.Cause(working) // the first
	}
	if err = errors.Join(err, s.stop()); err != nil {
		return fmt.Errorf("%w\nthe log ends with:\n%s", err, tryout.Tail(s.all[len(s.all)-1].log(), 20))
	}
	return nil
}

// log reads what was written down about a queue.
func (s *scene) log(queue string) (log, error) {
	arrivals, err := os.ReadFile(s.receiver.log)
	if err != nil {
		return log{}, err
	}
	return readLog(s.folder, queue, arrivals)
}
