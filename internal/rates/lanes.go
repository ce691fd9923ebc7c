package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"queuekeeper/internal/procs"
	"queuekeeper/internal/tryout"
)

// showLanes shows that lanes take turns, each by its weight, and that each has its own limit.
func showLanes(ctx context.Context, r *rig) ([]section, error) {
	shown := section{title: "Lanes", head: []string{"what", "measured", "promised"}}
	for _, show := range []func(context.Context, *section) error{r.showFlood, r.showWeights, r.showLaneLimit} {
		if err := show(ctx, &shown); err != nil {
			return nil, err
		}
	}
	return []section{shown}, nil
}

func (s *section) line(what, measured, promised string, held bool) {
	s.rows = append(s.rows, []string{what, measured, promised})
	if !held {
		s.wrong = append(s.wrong, fmt.Sprintf("%s: got %s, want %s", what, measured, promised))
	}
}

// The flood, and how many jobs come into other lanes while it is worked off: each into a lane of its own.
const (
	flood      = 100_000
	latecomers = 5
	turns      = 2
)

func (r *rig) showFlood(ctx context.Context, shown *section) error {
	n := flood
	if r.short {
		n /= 10
	}
	fmt.Fprintf(os.Stderr, "lanes: a flood of %d jobs\n", n)
	s, err := r.newScene(ctx, []worker{{queue: "flood", concurrency: 1}})
	if err != nil {
		return err
	}
	if err := s.enqueue(ctx, "flood", "", "flood", 0, n); err != nil {
		return err
	}
	var committed []time.Time
	late := func(ctx context.Context) error {
		if err := s.started(ctx, "flood", anyStart, 1); err != nil {
			return err
		}
		for i := range latecomers {
			if !tryout.Pause(ctx, 500*time.Millisecond) {
				return context.Cause(ctx)
			}
			if err := s.enqueue(ctx, "flood", "", latecomer(i), -lead, 1); err != nil {
				return err
			}
			committed = append(committed, onBoot(procs.BootClock()))
		}
		return s.started(ctx, "flood", func(e event) bool { return e.lane != "flood" }, latecomers)
	}
	if err := s.play(ctx, late); err != nil {
		return err
	}
	l, err := s.log("flood")
	if err != nil {
		return err
	}
	worst := 0
	for i, at := range committed {
		worst = max(worst, startsBefore(l.starts, latecomer(i), at))
	}
	what := fmt.Sprintf("starts of a lane with %d jobs between the commit of a job of another lane and its start, worst of %d", n, latecomers)
	shown.line(what, fmt.Sprint(worst), fmt.Sprintf("at most %d", turns), worst <= turns)
	return nil
}

func latecomer(i int) string { return fmt.Sprintf("late-%d", i+1) }

// weights are those of three lanes; a turn of all three is of ten jobs.
var weights = map[string]int{"five": 5, "three": 3, "two": 2}

func (r *rig) showWeights(ctx context.Context, shown *section) error {
	n := 10_000
	if r.short {
		n /= 5
	}
	fmt.Fprintf(os.Stderr, "lanes: weights, %d jobs\n", n)
	w := worker{queue: "weights", concurrency: 8, after: "[worker.lanes]\nfive = 5\nthree = 3\ntwo = 2\n"}
	s, err := r.newScene(ctx, []worker{w})
	if err != nil {
		return err
	}
	for lane := range weights {
		if err := s.enqueue(ctx, w.queue, "", lane, 0, n); err != nil {
			return err
		}
	}
	err = s.play(ctx, func(ctx context.Context) error {
		return s.started(ctx, w.queue, anyStart, n)
	})
	if err != nil {
		return err
	}
	l, err := s.log(w.queue)
	if err != nil {
		return err
	}
	off, measured := shares(l.starts[:min(n, len(l.starts))])
	shown.line(fmt.Sprintf("starts of lanes with weights 5, 3 and 2, of the first %d", n), measured, "5:3:2 within 2 %", off <= 0.02)
	return nil
}

// laneCount is how many lanes have a limit of 1 per second each.
const laneCount = 50

func (r *rig) showLaneLimit(ctx context.Context, shown *section) error {
	length := 20 * time.Second
	if r.short {
		length = 5 * time.Second
	}
	fmt.Fprintf(os.Stderr, "lanes: a limit for each, %s\n", length)
	s, err := r.newScene(ctx, []worker{{queue: "lanes", concurrency: 8, limits: "max_jobs_per_second_per_lane = 1\n"}})
	if err != nil {
		return err
	}
	for i := range laneCount {
		if err := s.enqueue(ctx, "lanes", "", fmt.Sprintf("lane-%d", i+1), 0, int(length.Seconds())+5); err != nil {
			return err
		}
	}
	if err := s.play(ctx, func(ctx context.Context) error { return s.until(ctx, length) }); err != nil {
		return err
	}
	l, err := s.log("lanes")
	if err != nil {
		return err
	}
	rate, over := laneRates(l.starts)
	shown.line(fmt.Sprintf("starts per second of a queue with %d lanes, each with a limit of 1/s", laneCount),
		fmt.Sprintf("%.2f", rate), "at least 49", rate >= 49)
	shown.line("windows of 1 s and more in which a lane had more than its limit", fmt.Sprint(over), "none", over == 0)
	return nil
}

func anyStart(event) bool { return true }

// started waits until so many starts of a kind are written down.
func (s *scene) started(ctx context.Context, queue string, counts func(event) bool, n int) error {
	ctx, cancel := context.WithTimeoutCause(ctx, time.Minute, errors.New("the jobs do not start"))
	defer cancel()
	for {
		l, err := readLog(s.folder, queue, nil)
		if err != nil {
			return err
		}
		if len(slices.DeleteFunc(l.starts, func(e event) bool { return !counts(e) })) >= n {
			return nil
		}
		if !tryout.Pause(ctx, 200*time.Millisecond) {
			return context.Cause(ctx)
		}
	}
}
