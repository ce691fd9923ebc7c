package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"queuekeeper/internal/windows"
)

// paces are the limits, in jobs per second, of queues that work off a backlog side by side for paceTime.
var paces = []int{10, 50, 200}

const paceTime = 20 // seconds

func paceQueue(perSecond int) string { return fmt.Sprintf("pace-%d", perSecond) }

func paceQueues() (queues []string) {
	for _, perSecond := range paces {
		queues = append(queues, paceQueue(perSecond))
	}
	return queues
}

func pace(ctx context.Context, b *bench) ([]figure, error) {
	if err := b.empty(ctx); err != nil {
		return nil, err
	}
	var workers []worker
	total := 0
	for _, perSecond := range paces {
		w := worker{queue: paceQueue(perSecond), concurrency: 10, perSecond: float64(perSecond)}
		n := perSecond * paceTime
		if err := b.enqueue(ctx, w.queue, stampName, n); err != nil {
			return nil, err
		}
		workers, total = append(workers, w), total+n
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	err = b.running(ctx, self, b.url(), workers, func(ctx context.Context) error { return b.done(ctx, total) })
	if err != nil {
		return nil, err
	}
	var figures []figure
	for _, perSecond := range paces {
		started, err := b.started(paceQueue(perSecond))
		if err != nil {
			return nil, err
		}
		figures = append(figures, paceFigures(perSecond, startTimes(started))...)
	}
	return figures, nil
}

func startTimes(started map[int64]time.Duration) (starts []time.Time) {
	for _, at := range started {
		starts = append(starts, time.Unix(0, int64(at)))
	}
	slices.SortFunc(starts, time.Time.Compare)
	return starts
}

func paceFigures(perSecond int, starts []time.Time) []figure {
	limit := float64(perSecond)
	span := starts[len(starts)-1].Sub(starts[0])
	return []figure{
		{
			what: fmt.Sprintf("starts of a backlogged queue limited to %d/s", perSecond), unit: "/s",
			measured: float64(len(starts)-1) / span.Seconds(), limit: limit, aim: ratioAtLeast(0.985),
		},
		{
			what: fmt.Sprintf("windows of %s over the limit of %d/s", windows.Shortest(limit), perSecond), worst: true,
			measured: float64(windows.Over(starts, windows.Shortest(limit), windows.Allowed(limit, 1, windows.Shortest(limit)))), aim: zero,
		},
	}
}
