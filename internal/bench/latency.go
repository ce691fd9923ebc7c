package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"queuekeeper/internal/procs"
)

// Each insert finds the queue idle: the one before is long done.
const (
	inserts       = 300
	insertSpacing = 25 * time.Millisecond
)

// latency measures from the moment a client sends the COMMIT of its INSERT to the handler's first instruction.
// The commit itself, and that of the Step that claims the job, are in it.
func latency(ctx context.Context, b *bench) ([]figure, error) {
	commits, err := b.commits(ctx)
	if err != nil {
		return nil, err
	}
	if err := b.empty(ctx); err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	w := worker{queue: "latency", concurrency: 1}
	var sent map[int64]time.Duration
	err = b.running(ctx, self, b.url(), []worker{w}, func(ctx context.Context) (err error) {
		if err := b.until(ctx, looking, 1, heldSQL); err != nil {
			return fmt.Errorf("wait for the child: %w", err)
		}
		if sent, err = b.insertSpaced(ctx, w.queue); err != nil {
			return err
		}
		return b.done(ctx, len(sent))
	})
	if err != nil {
		return nil, err
	}
	started, err := b.started(w.queue)
	if err != nil {
		return nil, err
	}
	return latencyFigures(commits, delays(sent, started)), nil
}

const heldSQL = `select count(*) from queues where supervisor is not null`

// insertSpaced returns when the COMMIT of each job was sent, on the boot clock.
func (b *bench) insertSpaced(ctx context.Context, queue string) (map[int64]time.Duration, error) {
	sent := map[int64]time.Duration{}
	spacing := time.NewTicker(insertSpacing)
	defer spacing.Stop()
	for range inserts {
		if err := wait(ctx, spacing.C); err != nil {
			return nil, err
		}
		err := pgx.BeginFunc(ctx, b.db, func(tx pgx.Tx) error {
			var id int64
			err := tx.QueryRow(ctx, `insert into jobs (queue, name) values ($1, $2) returning id`, queue, stampName).Scan(&id)
			sent[id] = procs.BootClock() // BeginFunc sends the COMMIT next
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("insert a job: %w", err)
		}
	}
	return sent, nil
}

// delays returns how long each job took, the shortest first.
func delays(sent, started map[int64]time.Duration) (delays []time.Duration) {
	for id, at := range sent {
		delays = append(delays, started[id]-at)
	}
	slices.Sort(delays)
	return delays
}

func latencyFigures(commits float64, delays []time.Duration) []figure {
	const what = "COMMIT of an INSERT to the handler's start, idle queue, "
	commit := 1000 / commits
	return []figure{
		commitsFigure(commits),
		{what: what + "p50", unit: " ms", measured: percentile(delays, 50), limit: commit, aim: ratioBelow(4)},
		{what: what + "p99", unit: " ms", measured: percentile(delays, 99), limit: commit, aim: below(5)},
	}
}

// percentile returns, in milliseconds, the smallest delay that p percent of them do not exceed.
func percentile(sorted []time.Duration, p int) float64 {
	rank := (len(sorted)*p + 99) / 100 // rounded up
	return float64(sorted[rank-1]) / float64(time.Millisecond)
}
