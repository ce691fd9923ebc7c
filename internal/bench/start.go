package main

import (
	"context"
	"fmt"
	"time"
)

const startWorkers = 200

// A child that found no room for its connection would try again later, and be measured as slow.
const connectionsSQL = `select count(*) from pg_stat_activity where backend_type = 'client backend'`

// start200 measures how long 200 children take to start and to stop, and what they cost in between. That all their
// statements are logged is in the figures; it is little beside the processes.
func start200(ctx context.Context, b *bench) ([]figure, error) {
	binary, err := b.build(ctx)
	if err != nil {
		return nil, err
	}
	bare, err := b.bare(ctx, startWorkers)
	if err != nil {
		return nil, err
	}
	if err := b.until(ctx, looking, 1, connectionsSQL); err != nil {
		return nil, fmt.Errorf("wait for the end of other connections: %w", err)
	}
	if err := b.empty(ctx); err != nil {
		return nil, err
	}
	var idle []figure
	var ready time.Duration
	var asked time.Time
	began := time.Now()
	err = b.idling(ctx, binary, startWorkers, func(ctx context.Context) (err error) {
		ready = time.Since(began)
		idle, err = b.idleFigures(ctx, startWorkers, "one of 200 idle children", 4)
		asked = time.Now()
		return err
	})
	if err != nil {
		return nil, err
	}
	left := time.Since(asked) // it ended with status 0
	if err := b.allReleased(ctx); err != nil {
		return nil, err
	}
	return append(startFigures(bare, ready, left), idle...), nil
}

func (b *bench) allReleased(ctx context.Context) error {
	var held int
	if err := b.db.QueryRow(ctx, heldSQL).Scan(&held); err != nil {
		return err
	}
	if held > 0 {
		return fmt.Errorf("the supervisor left with status 0 and %d queues are held", held)
	}
	return nil
}

func startFigures(bare, ready, left time.Duration) []figure {
	return []figure{
		{
			what: "200 queues from start to all held; limit: 200 times `true` and a connection, one by one",
			unit: " s", measured: ready.Seconds(), limit: bare.Seconds(), aim: below(5),
		},
		{what: "200 idle queues from TERM to exit, all released", unit: " s", measured: left.Seconds()},
	}
}
