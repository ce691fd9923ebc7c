// Command chaos hurts the program at random and checks that it keeps its promises. In each round a supervisor or more
// work off some hundred jobs, while what runs is killed, stopped, signalled and cut off at random moments; then they
// are told to leave, one way or another, and everything is looked at: what is left, what was lost, what ran twice
// without a reason. A round follows from the seed and its number, so that it can be played again.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/jackc/pgx/v5"

	"queuekeeper/cli"
	"queuekeeper/internal/localpg"
	"queuekeeper/migrations"
)

func main() {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "run", "child":
			os.Exit(cli.Main(handlers()))
		case workArgument:
			os.Exit(command())
		}
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(1)
	}
}

func run() error {
	rounds := flag.Int("rounds", 20, "how many rounds")
	seed := flag.Uint64("seed", 0, "what all chance comes from; 0: a new one")
	only := flag.Int("round", 0, "this round of the seed and no other; 0: all")
	keep := flag.Bool("keep", false, "keep the folder with the logs of all rounds")
	flag.Parse()
	if *seed == 0 {
		*seed = rand.Uint64N(1e9) + 1
	}
	first, last := 1, *rounds
	if *only > 0 {
		first, last = *only, *only
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return play(ctx, *seed, first, last, *keep)
}

// chaos is what the rounds share.
type chaos struct {
	folder   string
	self     string // this binary
	postgres *localpg.Cluster
	totals   totals

	restarting sync.Mutex // of Postgres
}

// template is the database that each round's is a copy of.
const template = "template_of_rounds"

func play(ctx context.Context, seed uint64, first, last int, keep bool) (err error) {
	c := &chaos{}
	fmt.Printf("rounds %d to %d of seed %d\n", first, last, seed)
	if c.self, err = os.Executable(); err != nil {
		return err
	}
	if c.folder, err = os.MkdirTemp("", "queuekeeper-chaos-"); err != nil {
		return err
	}
	defer func() {
		if keep {
			fmt.Fprintln(os.Stderr, "kept:", c.folder)
			return
		}
		err = errors.Join(err, os.RemoveAll(c.folder))
	}()
	if c.postgres, err = localpg.Start(ctx, localpg.Options{Settings: map[string]string{"fsync": "off"}}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.postgres.Stop()) }()
	if err := c.makeTemplate(ctx); err != nil {
		return err
	}
	for number := first; number <= last; number++ {
		if err := c.play(ctx, newPlan(seed, number)); err != nil {
			return fmt.Errorf("round %d of seed %d: %w", number, seed, err)
		}
	}
	return c.totals.print(os.Stdout, last-first+1, seed)
}

// play plays one round and tells on one line how it was; of one that failed, everything.
func (c *chaos) play(ctx context.Context, p plan) error {
	r, err := c.newRound(ctx, p)
	if err != nil {
		return err
	}
	err = r.play(ctx)
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	} else if err != nil {
		err = fmt.Errorf("%w\n%s\n%s", err, r.story(), r.logs(80))
	}
	if err = errors.Join(err, r.clean(), c.dropDatabase(ctx, r)); err != nil {
		return err
	}
	c.totals.add(r)
	fmt.Printf("round %d: %s\n", p.number, r.line())
	return nil
}

func (c *chaos) makeTemplate(ctx context.Context) error {
	if err := c.admin(ctx, "create database "+template); err != nil {
		return err
	}
	db, err := pgx.Connect(ctx, c.postgres.URL(template))
	if err != nil {
		return err
	}
	defer db.Close(context.WithoutCancel(ctx))
	return migrations.Up(ctx, db, "", migrations.Options{})
}

func (c *chaos) dropDatabase(ctx context.Context, r *round) error {
	return c.admin(context.WithoutCancel(ctx), fmt.Sprintf("drop database if exists %s with (force)", r.database()))
}

// admin runs a statement that is about databases.
func (c *chaos) admin(ctx context.Context, statement string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	db, err := pgx.Connect(ctx, c.postgres.URL("postgres"))
	if err != nil {
		return err
	}
	defer db.Close(context.WithoutCancel(ctx))
	_, err = db.Exec(ctx, statement)
	return err
}

func (c *chaos) roundFolder(number int) string {
	return filepath.Join(c.folder, fmt.Sprintf("round-%d", number))
}
