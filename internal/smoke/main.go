// Command smoke shows in under a minute that the whole program does what it promises: it builds it, runs it on a
// private Postgres with a supervisor and a child for each of four queues, enqueues jobs in every way there is, and
// measures what happened. It asks nothing and leaves nothing; exit status 0 means that all of it held.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"queuekeeper/internal/localpg"
)

// patience is for everything after the build.
const patience = 50 * time.Second

// queues are served side by side; each is done within about eight seconds of backlog.
var queues = []queue{
	{name: "discord", perSecond: 30, burst: 5, concurrency: 8, jobs: 240},
	{name: "github", perSecond: 10, burst: 1, concurrency: 2, jobs: 80},
	{name: "postmark", perSecond: 0.5, burst: 1, concurrency: 1, jobs: 5},
	{name: "slack", perSecond: 2.5, burst: 1, concurrency: 1, jobs: 20},
}

type queue struct {
	name        string
	perSecond   float64
	burst       int
	concurrency int
	jobs        int
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "smoke:", err)
		os.Exit(1)
	}
}

func run() error {
	if len(os.Args) == 2 && os.Args[1] == "mark" {
		return mark(time.Now())
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return smoke(ctx, os.Stdout)
}

func smoke(ctx context.Context, out io.Writer) (err error) {
	folder, err := os.MkdirTemp("", "queuekeeper-smoke-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	fmt.Fprintln(out, "building queuekeeper")
	if err := build(ctx, filepath.Join(folder, "queuekeeper")); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	fmt.Fprintln(out, "starting a private Postgres")
	postgres, err := localpg.Start(ctx, localpg.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, postgres.Stop()) }()
	return try(ctx, out, folder, postgres)
}

// try is one life of the program: from an empty database to jobs done and nothing left.
func try(ctx context.Context, out io.Writer, folder string, postgres *localpg.Cluster) error {
	p := program{folder: folder, databaseURL: postgres.URL("postgres")}
	if err := p.writeFile(queues); err != nil {
		return err
	}
	if err := p.do(ctx, "migrate"); err != nil {
		return err
	}
	db, err := pgx.Connect(ctx, p.databaseURL)
	if err != nil {
		return err
	}
	defer db.Close(context.WithoutCancel(ctx))

	e := enqueuer{program: p, db: db, psql: postgres.Bin("psql")}
	if err := e.before(ctx, queues); err != nil {
		return err
	}
	fmt.Fprintln(out, "running a supervisor and its children")
	s, err := p.start(ctx)
	if err != nil {
		return err
	}
	err = e.meanwhile(ctx, queues)
	if err == nil {
		err = done(ctx, db, queues, s.ended)
	}
	// Whatever came of it: the supervisor is stopped, and what became of the jobs is told.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*leavePatience)
	defer cancel()
	err = errors.Join(err, s.stop(), free(ctx, db), report(ctx, out, db, p, queues))
	if err != nil {
		return fmt.Errorf("%w\nthe log ends with:\n%s", err, s.log.tail(20))
	}
	fmt.Fprintln(out, "passed: every job done once, no window over its limit, nothing left behind")
	return nil
}

func build(ctx context.Context, binary string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-o", binary, "queuekeeper/cmd/queuekeeper")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	return output(cmd)
}

// output runs a command that is not expected to say anything of interest, unless it fails.
func output(cmd *exec.Cmd) error {
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", cmd, err, said)
	}
	return nil
}
