package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"queuekeeper/internal/procs"
	"queuekeeper/jobs"
)

// The names of the jobs.
const (
	noopName  = "Noop"
	stampName = "Stamp"
)

// handlers are those of this binary when it runs as the program.
func handlers() jobs.Handlers {
	all := jobs.Handlers{}
	for _, queue := range append([]string{"serial", "batch", "latency"}, paceQueues()...) {
		all[queue] = map[string]jobs.Handler{noopName: noop, stampName: stamp}
	}
	return all
}

func noop(context.Context, jobs.Job) error { return nil }

// stampsVariable tells handlers in which folder to write down their starts.
const stampsVariable = "QUEUEKEEPER_BENCH_STAMPS"

func (b *bench) stamps() string { return filepath.Join(b.folder, "stamps") }

// stamp writes down when it started, by the one clock that all processes of the machine share. A line is one
// write, so that those of jobs that run at the same time do not mix.
func stamp(_ context.Context, job jobs.Job) error {
	now := procs.BootClock()
	f, err := stampFile(job.Queue)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "%d %d\n", job.ID, now)
	return err
}

var (
	stampOnce sync.Once
	stampTo   *os.File
	errStamp  error
)

// stampFile opens the file once: a child serves one queue.
func stampFile(queue string) (*os.File, error) {
	stampOnce.Do(func() {
		path := filepath.Join(os.Getenv(stampsVariable), queue)
		stampTo, errStamp = os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	})
	return stampTo, errStamp
}

// started returns when each job of a queue started, on the boot clock.
func (b *bench) started(queue string) (map[int64]time.Duration, error) {
	text, err := os.ReadFile(filepath.Join(b.stamps(), queue))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("no job of queue %s started", queue)
	}
	if err != nil {
		return nil, err
	}
	return parseStamps(text)
}

func parseStamps(text []byte) (map[int64]time.Duration, error) {
	started := map[int64]time.Duration{}
	for line := range bytes.Lines(text) {
		var id int64
		var at time.Duration
		if _, err := fmt.Sscanf(string(line), "%d %d\n", &id, (*int64)(&at)); err != nil {
			return nil, fmt.Errorf("read stamp %q: %w", strings.TrimSpace(string(line)), err)
		}
		started[id] = at
	}
	return started, nil
}
