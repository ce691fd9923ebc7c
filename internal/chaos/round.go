package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"queuekeeper/internal/tryout"
)

// round is one of them as it is played. One goroutine owns it; the others only send signals, enqueue, watch, and
// report faults.
type round struct {
	plan
	chaos    *chaos
	folder   string
	db       patient
	watch    *watch
	settings map[string]setting

	began       time.Time
	supervisors []*supervisor
	noted       []fault
	hits        map[string]int  // by kind
	later       sync.WaitGroup  // signals that are still to be sent
	repairs     sync.WaitGroup  // of Postgres
	took        []time.Duration // for each part of the round
	repeats     int
	remained    int // supervisors that ended with status 1

	mu     sync.Mutex
	faults []error
}

// fault is something that ends attempts, which then run again.
type fault struct {
	queue    string // or everyQueue
	commands bool   // it is only about queues with commands
	kills    bool   // what it ends counts as an attempt
	from, to time.Time
}

// How long after a signal something may still start that feels it: KILL is there at once, the others are read by a
// loop that may be waiting for Postgres, or be stopped.
const (
	soon = 100 * time.Millisecond
	late = 2 * time.Second
)

func (r *round) note(f fault, after time.Duration) {
	f.to = time.Now().Add(after)
	r.noted = append(r.noted, f)
}

func (r *round) faultf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.faults = append(r.faults, fmt.Errorf(format, args...))
}

func (c *chaos) newRound(ctx context.Context, p plan) (*round, error) {
	r := &round{
		plan: p, chaos: c, folder: c.roundFolder(p.number), watch: newWatch(),
		settings: map[string]setting{}, hits: map[string]int{},
	}
	r.db.url = r.url()
	if err := os.Mkdir(r.folder, 0o755); err != nil {
		return nil, err
	}
	return r, c.admin(ctx, fmt.Sprintf("create database %s template %s", r.database(), template))
}

func (r *round) database() string { return fmt.Sprintf("round_%d", r.number) }
func (r *round) url() string      { return r.chaos.postgres.URL(r.database()) }

// play plays the round. The error is everything that was not as promised.
func (r *round) play(ctx context.Context) error {
	for _, part := range []func(context.Context) error{r.hurt, r.leave, r.finish, r.judge} {
		began := time.Now()
		if err := part(ctx); err != nil {
			r.faultf("%w", err)
			break // what follows would be a consequence
		}
		r.took = append(r.took, time.Since(began))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return errors.Join(r.faults...)
}

// hurt is the window.
func (r *round) hurt(ctx context.Context) error {
	if err := r.writeFile(); err != nil {
		return err
	}
	if err := r.enqueue(ctx, &r.db, 0); err != nil {
		return err
	}
	if _, err := r.start(ctx); err != nil {
		return err
	}
	r.began = time.Now()
	beside, end := context.WithCancel(ctx)
	var others sync.WaitGroup
	defer others.Wait()
	defer end()
	others.Go(func() { r.watch.run(beside, r.url()) })
	enqueued := make(chan error, 1)
	others.Go(func() { enqueued <- r.enqueueMeanwhile(beside) })
	defer r.repairs.Wait()
	for _, e := range r.events {
		if err := r.happen(ctx, e); err != nil {
			return fmt.Errorf("%s: %w", e.kind.name, err)
		}
	}
	tryout.Pause(ctx, time.Until(r.began.Add(window)))
	r.repairs.Wait()
	if err := <-enqueued; err != nil {
		return fmt.Errorf("enqueue: %w", err)
	}
	if r.hang {
		if err := r.stopForGood(ctx); err != nil {
			return err
		}
	}
	r.watch.disturbed(everyQueue)
	return nil
}

func (r *round) happen(ctx context.Context, e *event) error {
	if !tryout.Pause(ctx, time.Until(r.began.Add(e.at))) {
		return ctx.Err()
	}
	at := time.Since(r.began)
	hit, err := e.kind.do(r, ctx, e)
	if err != nil {
		return err
	}
	if hit == "" {
		e.happened = fmt.Sprintf("at %.3f s: nobody there", at.Seconds())
		return nil
	}
	r.hits[e.kind.name]++
	e.happened = fmt.Sprintf("at %.3f s: %s", at.Seconds(), hit)
	return nil
}

func (r *round) enqueueMeanwhile(ctx context.Context) error {
	db := patient{url: r.url()}
	defer db.close()
	for batch := 1; batch < batches; batch++ {
		tryout.Pause(ctx, time.Until(r.began.Add(time.Duration(batch)*window/batches)))
		if err := r.enqueue(ctx, &db, batch); err != nil {
			return err
		}
	}
	return nil
}

// Done again after its answer was lost, it enqueues nothing.
const enqueueSQL = `
insert into jobs (queue, lane, name, args)
select * from unnest($1::text[], $2::text[], $3::text[], $4::jsonb[])
where not exists (select from jobs where args['batch'] = to_jsonb($5::int))`

func (r *round) enqueue(ctx context.Context, db *patient, batch int) error {
	var queues, lanes, names, all []string
	for i, j := range r.jobs[batch] {
		text, err := json.Marshal(args{MS: j.ms, Slots: j.queue.concurrency, Batch: batch})
		if err != nil {
			return err
		}
		queues, names, all = append(queues, j.queue.name), append(names, j.name), append(all, string(text))
		lanes = append(lanes, fmt.Sprint("lane ", i%max(1, j.queue.lanes)))
	}
	return db.do(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, enqueueSQL, queues, lanes, names, all, batch)
		return err
	})
}

// until waits until it is so, and returns why it is not after a time in which it should be.
func until(ctx context.Context, so func() error) error {
	for end := time.Now().Add(patience); ; {
		err := so()
		if err == nil || time.Now().After(end) {
			return err
		}
		if !tryout.Pause(ctx, 10*time.Millisecond) {
			return ctx.Err()
		}
	}
}

// value is the one value a query returns.
func value[T any](ctx context.Context, db *patient, sql string, args ...any) (v T, err error) {
	err = db.do(ctx, func(ctx context.Context, conn *pgx.Conn) error { return conn.QueryRow(ctx, sql, args...).Scan(&v) })
	return v, err
}

// story is all that happened.
func (r *round) story() string {
	return fmt.Sprintf("began %s; %s", r.began.UTC().Format(clock), r.plan.story())
}

func (r *round) line() string {
	return fmt.Sprintf("%s; %d jobs, %d started again; hurt for %.1f s, left by %s in %.1f s, did the rest in %.1f s",
		r.names(), r.count(), r.repeats, r.took[0].Seconds(), r.way.name, r.took[1].Seconds(), r.took[2].Seconds())
}
