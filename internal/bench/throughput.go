package main

import (
	"context"
	"fmt"
	"os"
)

// The aims, in commits of the machine per job. A round is of as many jobs as take throughputTime at the aim.
const (
	serialAim      = 0.55
	batchAim       = 10
	throughputTime = 3 // seconds
)

// serialWhat names the figure whose ratio has a line of its own.
const serialWhat = "jobs one at a time, each committed before the next starts"

func serial(ctx context.Context, b *bench) ([]figure, error) {
	return b.throughput(ctx, worker{queue: "serial", concurrency: 1}, serialWhat, serialAim)
}

func batch(ctx context.Context, b *bench) ([]figure, error) {
	return b.throughput(ctx, worker{queue: "batch", concurrency: 100}, "jobs at concurrency 100, no limit", batchAim)
}

// throughput works off a backlog. The handlers do nothing at all: the rows tell when they were finished.
func (b *bench) throughput(ctx context.Context, w worker, what string, aim float64) ([]figure, error) {
	commits, err := b.commits(ctx)
	if err != nil {
		return nil, err
	}
	if err := b.empty(ctx); err != nil {
		return nil, err
	}
	n := int(commits * aim * throughputTime)
	if err := b.enqueue(ctx, w.queue, noopName, n); err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	err = b.running(ctx, self, b.url(), []worker{w}, func(ctx context.Context) error { return b.done(ctx, n) })
	if err != nil {
		return nil, err
	}
	rate, err := b.finishRate(ctx)
	if err != nil {
		return nil, err
	}
	return []figure{
		commitsFigure(commits),
		{what: what, unit: "/s", measured: rate, limit: commits, aim: ratioAtLeast(aim)},
	}, nil
}

// The first to be finished, a whole batch maybe, began before the time that counts.
const finishRateSQL = `
select count(*) filter (where finished_at > first) / extract(epoch from max(finished_at) - min(first))::float8
from jobs, (select min(finished_at) as first from jobs) f`

// finishRate is how many jobs were finished per second.
func (b *bench) finishRate(ctx context.Context) (rate float64, err error) {
	if err := b.db.QueryRow(ctx, finishRateSQL).Scan(&rate); err != nil {
		return 0, fmt.Errorf("work out the rate: %w", err)
	}
	return rate, nil
}
