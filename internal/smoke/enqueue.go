package main

import (
	"context"
	"fmt"
	"os/exec"

	"github.com/jackc/pgx/v5"

	"queuekeeper/jobs"
)

// byCLI jobs of each queue are enqueued by the command line; psql and the Go API share the others.
const byCLI = 1

// enqueuer enqueues in every way there is.
type enqueuer struct {
	program program
	db      *pgx.Conn
	psql    string
}

// before enqueues what waits when the program starts.
func (e enqueuer) before(ctx context.Context, queues []queue) error {
	for _, q := range queues {
		if err := e.byPsql(ctx, q.name, q.jobs/2); err != nil {
			return err
		}
	}
	return nil
}

// meanwhile enqueues the rest, while the program runs.
func (e enqueuer) meanwhile(ctx context.Context, queues []queue) error {
	for _, q := range queues {
		for range byCLI {
			if err := e.program.do(ctx, "enqueue", q.name, "Smoke", `{"by": "cli"}`); err != nil {
				return err
			}
		}
		if err := e.byGo(ctx, q.name, q.jobs-q.jobs/2-byCLI); err != nil {
			return err
		}
		if err := e.rolledBack(ctx, q.name); err != nil {
			return err
		}
	}
	return nil
}

func (e enqueuer) byPsql(ctx context.Context, queue string, n int) error {
	statement := fmt.Sprintf(`insert into jobs (queue, name, args)
select '%s', 'Smoke', '{"by": "psql"}' from generate_series(1, %d)`, queue, n)
	return output(exec.CommandContext(ctx, e.psql, "-X", "-q", "-v", "ON_ERROR_STOP=1",
		"-d", e.program.databaseURL, "-c", statement))
}

func (e enqueuer) byGo(ctx context.Context, queue string, n int) error {
	return pgx.BeginFunc(ctx, e.db, func(tx pgx.Tx) error {
		for range n {
			if _, err := jobs.Enqueue(ctx, tx, job(queue)); err != nil {
				return err
			}
		}
		return nil
	})
}

// rolledBack enqueues a job that must never run: its mark would be one without a row.
func (e enqueuer) rolledBack(ctx context.Context, queue string) error {
	tx, err := e.db.Begin(ctx)
	if err != nil {
		return err
	}
	if _, err := jobs.Enqueue(ctx, tx, job(queue)); err != nil {
		return err
	}
	return tx.Rollback(ctx)
}

func job(queue string) jobs.New {
	return jobs.New{Queue: queue, Name: "Smoke", Args: map[string]string{"by": "go"}}
}
