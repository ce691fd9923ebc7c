package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	idleTime    = 30 * time.Second // three times what renewals and polls are apart
	idleWorkers = 4
)

// idle measures children of the real binary that have nothing to do.
func idle(ctx context.Context, b *bench) (figures []figure, err error) {
	binary, err := b.build(ctx)
	if err != nil {
		return nil, err
	}
	if err := b.empty(ctx); err != nil {
		return nil, err
	}
	err = b.idling(ctx, binary, idleWorkers, func(ctx context.Context) (err error) {
		figures, err = b.idleFigures(ctx, idleWorkers, "an idle child", 3)
		return err
	})
	return figures, err
}

// idling does something while n children that have nothing to do hold their queues. Their sessions write every
// statement to the log of Postgres; ours do not.
func (b *bench) idling(ctx context.Context, binary string, n int, do func(context.Context) error) error {
	var workers []worker
	for i := range n {
		workers = append(workers, worker{queue: fmt.Sprintf("idle-%d", i+1), concurrency: 1, command: []string{"true"}})
	}
	return b.running(ctx, binary, b.url()+"&log_statement=all", workers, func(ctx context.Context) error {
		if err := b.until(ctx, closely, n, heldSQL); err != nil {
			return fmt.Errorf("wait for the children: %w", err)
		}
		return do(ctx)
	})
}

// idleFigures are what each of n children costs while nothing happens. mostMB is the aim for its memory.
func (b *bench) idleFigures(ctx context.Context, n int, child string, mostMB float64) ([]figure, error) {
	statements, err := b.statements(ctx, idleTime)
	if err != nil {
		return nil, err
	}
	memory, err := b.memory(ctx)
	if err != nil {
		return nil, err
	}
	figures := []figure{{
		what: "statements per second of " + child, unit: "/s", aim: below(0.3),
		measured: statements / float64(n) / idleTime.Seconds(),
	}}
	if memory > 0 {
		figures = append(figures, figure{
			what: "private memory (USS) of " + child, unit: " MB", measured: memory / 1e6, aim: below(mostMB),
		})
	}
	return figures, nil
}

// build builds the real binary; from the second time on there is nothing to do.
func (b *bench) build(ctx context.Context) (string, error) {
	binary := filepath.Join(b.folder, "queuekeeper")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", binary, "queuekeeper/cmd/queuekeeper")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOTMPDIR="+b.folder) // cut off, it leaves things there
	if said, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", cmd, err, said)
	}
	return binary, nil
}

var statementPattern = regexp.MustCompile(`LOG:  (execute|statement)`)

// statements counts what the log of Postgres shows within d.
func (b *bench) statements(ctx context.Context, d time.Duration) (float64, error) {
	before, err := os.ReadFile(b.postgres.Log())
	if err != nil {
		return 0, err
	}
	if err := wait(ctx, time.After(d)); err != nil {
		return 0, err
	}
	after, err := os.ReadFile(b.postgres.Log())
	if err != nil {
		return 0, err
	}
	return float64(len(statementPattern.FindAll(after[len(before):], -1))), nil
}

// memory is the private memory of the median child, in bytes; 0 where the kernel does not tell.
func (b *bench) memory(ctx context.Context) (float64, error) {
	rows, err := b.db.Query(ctx, `select pid from queues`)
	if err != nil {
		return 0, err
	}
	pids, err := pgx.CollectRows(rows, pgx.RowTo[int])
	if err != nil {
		return 0, err
	}
	var each []float64
	for _, pid := range pids {
		rollup, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
		if errors.Is(err, fs.ErrNotExist) {
			return 0, nil
		}
		if err != nil {
			return 0, err
		}
		each = append(each, float64(private(rollup)))
	}
	return median(each), nil
}

var privatePattern = regexp.MustCompile(`(?m)^Private_(?:Clean|Dirty): +(\d+) kB$`)

// private returns how many bytes of a process are its own, from its smaps_rollup.
func private(rollup []byte) (sum int) {
	for _, m := range privatePattern.FindAllSubmatch(bytes.TrimSpace(rollup), -1) {
		kB, _ := strconv.Atoi(string(m[1])) // digits
		sum += kB << 10
	}
	return sum
}
