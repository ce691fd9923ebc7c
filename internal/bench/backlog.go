package main

import (
	"context"
	"fmt"
	"os"
	"time"
)

// empty leaves no job, no queue and no stamp of what was measured before.
func (b *bench) empty(ctx context.Context) error {
	if err := os.RemoveAll(b.stamps()); err != nil {
		return err
	}
	if err := os.Mkdir(b.stamps(), 0o755); err != nil {
		return err
	}
	_, err := b.db.Exec(ctx, `truncate jobs, queues, lanes`)
	return err
}

const enqueueSQL = `insert into jobs (queue, name) select $1, $2 from generate_series(1, $3::int)`

func (b *bench) enqueue(ctx context.Context, queue, name string, n int) error {
	_, err := b.db.Exec(ctx, enqueueSQL, queue, name, n)
	return err
}

// looking is how often progress is looked for, closely and tightly where the moment itself is measured. doneTime is
// how long the last outcomes may take to be recorded.
const (
	looking  = 100 * time.Millisecond
	closely  = 10 * time.Millisecond
	tightly  = time.Millisecond
	doneTime = 10 * time.Second
)

// Reading the few rows of queues costs next to nothing while jobs are measured; counting jobs would.
const startsSQL = `select coalesce(sum(starts), 0) from queues`

const undoneSQL = `select count(*) from jobs where state <> 'done' or attempts <> 1`

// done waits until all of n jobs are done. Each must be after one attempt.
func (b *bench) done(ctx context.Context, n int) error {
	if err := b.until(ctx, looking, n, startsSQL); err != nil {
		return fmt.Errorf("wait for %d starts: %w", n, err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, doneTime, fmt.Errorf("some are not %s later", doneTime))
	defer cancel()
	if err := b.until(ctx, looking, 0, undoneSQL); err != nil {
		return fmt.Errorf("wait for %d jobs to be done after one attempt: %w", n, err)
	}
	return nil
}

// until waits until a query, asked that often, returns want.
func (b *bench) until(ctx context.Context, every time.Duration, want int, query string, args ...any) error {
	look := time.NewTicker(every)
	defer look.Stop()
	for {
		var got int
		if err := b.db.QueryRow(ctx, query, args...).Scan(&got); err != nil {
			return err
		}
		if got == want {
			return nil
		}
		if err := wait(ctx, look.C); err != nil {
			return err
		}
	}
}

// wait waits for a tick, or for the end of ctx, which is an error.
func wait(ctx context.Context, tick <-chan time.Time) error {
	select {
	case <-tick:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
