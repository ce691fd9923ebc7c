package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"queuekeeper/jobs"
)

// A queue of lanes, with a backlog that is due, or all for later, beside one with the same backlog in one lane.
const (
	laneCount = 10_000
	laneSteps = 300
)

const fillLanesSQL = `
insert into jobs (queue, name, lane, run_at)
select $1, 'bench', 'lane ' || i % $2::int, now() + $3::float8 * interval '1 s'
from generate_series(1, $4::int) i`

func lanes(ctx context.Context, b *bench) ([]figure, error) {
	if err := b.empty(ctx); err != nil {
		return nil, err
	}
	const hour = 3600
	for _, f := range []struct {
		queue string
		lanes int
		due   float64
	}{{"one", 1, -hour}, {"due", laneCount, -hour}, {"later", laneCount, hour}} {
		if _, err := b.db.Exec(ctx, fillLanesSQL, f.queue, f.lanes, f.due, *pending); err != nil {
			return nil, err
		}
	}
	if _, err := b.db.Exec(ctx, `vacuum analyze jobs`); err != nil {
		return nil, err
	}
	var figures []figure
	one := map[int]time.Duration{}
	for _, n := range []int{1, 100} {
		took, err := b.steps(ctx, "one", n, nil, nil)
		if err != nil {
			return nil, err
		}
		one[n] = took
		if took, err = b.steps(ctx, "due", n, &jobs.Turns{}, nil); err != nil {
			return nil, err
		}
		figures = append(figures, stepFigure(n, "all due", took, one[n]))
	}
	took, err := b.steps(ctx, "later", 1, &jobs.Turns{}, func() error {
		_, err := b.db.Exec(ctx, `insert into jobs (queue, name, lane) values ('later', 'bench', 'lane 7')`)
		return err
	})
	if err != nil {
		return nil, err
	}
	return append(figures, stepFigure(1, "one of them due, all others later", took, one[1])), nil
}

func stepFigure(n int, of string, took, one time.Duration) figure {
	return figure{
		what: fmt.Sprintf("Step of %d jobs, %d lanes, %s", n, laneCount, of), unit: " ms",
		measured: milliseconds(took), limit: milliseconds(one), aim: ratioBelow(3),
	}
}

func milliseconds(d time.Duration) float64 { return d.Seconds() * 1000 }

// steps is how long a Step takes, as the median, that records n jobs and claims the next.
func (b *bench) steps(ctx context.Context, queue string, n int, turns *jobs.Turns, before func() error) (time.Duration, error) {
	conn, err := pgx.Connect(ctx, b.url())
	if err != nil {
		return 0, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if err := jobs.PrepareSession(ctx, conn, "bench", time.Hour); err != nil {
		return 0, err
	}
	q, err := jobs.Schema("").Acquire(ctx, conn, queue, jobs.Bid{
		Holder: jobs.Holder{Supervisor: "bench", N: 1, C: 1}, TTL: time.Hour, Limits: jobs.Limits{MaxAttempts: 20},
	})
	if err != nil {
		return 0, err
	}
	step, took := jobs.Step{Claim: n, Turns: turns}, make([]time.Duration, 0, laneSteps)
	for range laneSteps {
		if before != nil {
			if err := before(); err != nil {
				return 0, err
			}
		}
		sent := time.Now()
		reply, err := q.Step(ctx, step)
		if err != nil {
			return 0, err
		}
		took = append(took, time.Since(sent))
		if len(reply.Claimed) != n {
			return 0, fmt.Errorf("claimed %d jobs of queue %s, not %d", len(reply.Claimed), queue, n)
		}
		step.Rates.Lane, step.Rates.LaneLeft, step.Ended = reply.Lane, reply.LaneLeft, step.Ended[:0]
		for _, j := range reply.Claimed {
			step.Ended = append(step.Ended, jobs.Ended{Ref: j.Ref(), Kind: jobs.KindDone, Started: sent})
		}
	}
	slices.Sort(took)
	return took[len(took)/2], q.Release(ctx, jobs.Step{Rates: step.Rates, Ended: step.Ended}, jobs.LaneRates{})
}
