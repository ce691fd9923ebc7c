package main

import (
	"context"
	"fmt"
	"slices"
	"syscall"
	"time"
)

// kills is how many children are killed in a round. Each serves a queue of its own: the first death of a child is
// followed by a start at once, a second in a row waits on purpose.
const kills = 20

const runningSQL = `select count(*) from jobs where state = 'running'`

// kill measures from the SIGKILL of a child, whose job is a command that runs, to that job's being pending again.
func kill(ctx context.Context, b *bench) ([]figure, error) {
	binary, err := b.build(ctx)
	if err != nil {
		return nil, err
	}
	bare, err := b.bare(ctx, kills)
	if err != nil {
		return nil, err
	}
	if err := b.empty(ctx); err != nil {
		return nil, err
	}
	var workers []worker
	for i := range kills {
		w := worker{queue: fmt.Sprintf("kill-%d", i+1), concurrency: 1, command: []string{"sleep", "600"}}
		if err := b.enqueue(ctx, w.queue, "Sleep", 1); err != nil {
			return nil, err
		}
		workers = append(workers, w)
	}
	var delays []time.Duration
	err = b.running(ctx, binary, b.url(), workers, func(ctx context.Context) (err error) {
		if err := b.until(ctx, looking, kills, runningSQL); err != nil {
			return fmt.Errorf("wait for the jobs to run: %w", err)
		}
		delays, err = b.killEach(ctx, workers)
		return err
	})
	if err != nil {
		return nil, err
	}
	return killFigures(bare/kills, delays), nil
}

// killEach kills one child after the other, and returns how long the job of each took to be pending.
func (b *bench) killEach(ctx context.Context, workers []worker) (delays []time.Duration, err error) {
	for _, w := range workers {
		delay, err := b.killOne(ctx, w.queue)
		if err != nil {
			return nil, fmt.Errorf("kill the child of queue %s: %w", w.queue, err)
		}
		delays = append(delays, delay)
	}
	return delays, nil
}

const (
	victimSQL = `
select pid
from queues
join jobs using (queue)
where queue = $1 and supervisor is not null and state = 'running' and attempts = 1`

	backSQL = `select count(*) from jobs where queue = $1 and (state = 'pending' or attempts > 1)`
)

func (b *bench) killOne(ctx context.Context, queue string) (time.Duration, error) {
	var pid int
	if err := b.db.QueryRow(ctx, victimSQL, queue).Scan(&pid); err != nil {
		return 0, fmt.Errorf("find it at its first attempt: %w", err)
	}
	killed := time.Now()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		return 0, err
	}
	if err := b.until(ctx, tightly, 1, backSQL, queue); err != nil {
		return 0, fmt.Errorf("wait for its job to be pending: %w", err)
	}
	delay := time.Since(killed)
	// Its second attempt would run beside the next measurement, and at the end be waited for.
	_, err := b.db.Exec(ctx, `delete from jobs where queue = $1`, queue)
	return delay, err
}

func killFigures(bare time.Duration, delays []time.Duration) []figure {
	const what = "kill -9 of a child to its job pending again, "
	slices.Sort(delays)
	return []figure{
		{
			what: what + "p50; limit: `true` and a connection", unit: " ms",
			measured: percentile(delays, 50), limit: float64(bare) / float64(time.Millisecond), aim: below(1000),
		},
		{what: what + "worst", unit: " ms", worst: true, measured: percentile(delays, 100), aim: below(1000)},
	}
}
