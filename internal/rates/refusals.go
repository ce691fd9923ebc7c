package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/jackc/pgx/v5"

	"queuekeeper/internal/procs"
	"queuekeeper/internal/tryout"
)

// refusal is a queue behind a receiver that refuses now and then.
type refusal struct {
	concurrency int
	kills       bool // its child, in every pause
}

var refusals = []refusal{{concurrency: 1}, {concurrency: 8}, {concurrency: 8, kills: true}}

// refusalLimit is that of each; a refusal a second, then, between the pauses.
var refusalLimit = pace(50, 1)

func (r refusal) queue() string {
	if r.kills {
		return fmt.Sprintf("refused-c%d-kill", r.concurrency)
	}
	return fmt.Sprintf("refused-c%d", r.concurrency)
}

func refusalQueues() (queues []string) {
	for _, r := range refusals {
		queues = append(queues, r.queue())
	}
	return queues
}

// counts is what the table says of a job's attempts.
type counts struct {
	ID                           int64
	State                        string
	Attempts, Excused, Throttled int
}

const countsSQL = `select id, state, attempts, excused, throttled from jobs where queue = $1`

func showRefusals(ctx context.Context, r *rig) ([]section, error) {
	length := 33 * time.Second
	if r.short {
		length = 9 * time.Second
	}
	fmt.Fprintf(os.Stderr, "refusals, %s\n", length)
	var workers []worker
	for _, f := range refusals {
		workers = append(workers, worker{queue: f.queue(), concurrency: f.concurrency, limits: refusalLimit.toml()})
	}
	s, err := r.newScene(ctx, workers)
	if err != nil {
		return nil, err
	}
	do := []func(context.Context) error{func(ctx context.Context) error { return s.until(ctx, length) }}
	for _, f := range refusals {
		n := int(refusalLimit.perSecond * length.Seconds())
		if err := s.enqueue(ctx, f.queue(), r.receiver.url(refusingPath), "default", 0, n); err != nil {
			return nil, err
		}
		if f.kills {
			do = append(do, func(ctx context.Context) error { return s.killInPauses(ctx, f.queue(), length-faultTime) })
		}
	}
	if err := s.play(ctx, do...); err != nil {
		return nil, err
	}
	return s.judgeRefusals(ctx)
}

// killInPauses kills the child of a queue in each pause, at a random moment.
func (s *scene) killInPauses(ctx context.Context, queue string, until time.Duration) error {
	for seen := 0; s.offset() < until; {
		l, err := s.log(queue)
		if err != nil {
			return err
		}
		refused := refusedOf(l.arrivals)
		if len(refused) == seen {
			if !tryout.Pause(ctx, 50*time.Millisecond) {
				return context.Cause(ctx)
			}
			continue
		}
		seen = len(refused)
		at := refused[seen-1].at.Add(refusedFor/10 + rand.N(refusedFor*8/10))
		if !tryout.Pause(ctx, at.Sub(onBoot(procs.BootClock()))) {
			return context.Cause(ctx)
		}
		if err := s.killChild(ctx, queue); err != nil {
			return err
		}
	}
	return nil
}

func (s *scene) judgeRefusals(ctx context.Context) ([]section, error) {
	shown := section{title: "Refusals", head: []string{
		"what happens", "jobs at a time", "calls", "refused", "calls in a pause", "starts before their turn after it",
		"most in a window", "allowed", "windows over", "jobs with wrong counts",
	}}
	db, err := pgx.Connect(ctx, s.url)
	if err != nil {
		return nil, err
	}
	defer db.Close(context.WithoutCancel(ctx))
	for _, f := range refusals {
		l, err := s.log(f.queue())
		if err != nil {
			return nil, err
		}
		rows, err := db.Query(ctx, countsSQL, f.queue())
		if err != nil {
			return nil, err
		}
		all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[counts])
		if err != nil {
			return nil, err
		}
		v := judgeRefusal(f, l, all)
		v.kills = s.deaths[f.queue()]
		shown.rows = append(shown.rows, v.row())
		shown.wrong = append(shown.wrong, v.wrong()...)
	}
	return []section{shown}, nil
}
