// Command bench measures how fast the program is, each figure beside a limit that holds on the same machine at the
// same time: it runs on a private Postgres with default durability, in rounds, and tells the medians. What it runs
// is the real supervisor with its children: this binary starts itself as both, with Go handlers that do nothing, or
// where processes are what is measured, the program that users have.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"queuekeeper/cli"
	"queuekeeper/internal/localpg"
	"queuekeeper/internal/tryout"
	"queuekeeper/migrations"
)

const (
	rounds   = 3
	patience = 12 * time.Minute // for everything
)

// part is something to measure, once in every round.
type part = func(context.Context, *bench) ([]figure, error)

var parts = tryout.Parts[part]{
	{Name: "serial", Do: serial},
	{Name: "batch", Do: batch},
	{Name: "latency", Do: latency},
	{Name: "pace", Do: pace},
	{Name: "idle", Do: idle},
	{Name: "start200", Do: start200},
	{Name: "kill", Do: kill},
	{Name: "lanes", Do: lanes},
}

var pending = flag.Int("pending", 100_000, "jobs of each queue of the part lanes")

func main() {
	if len(os.Args) > 1 && (os.Args[1] == "run" || os.Args[1] == "child") {
		os.Exit(cli.Main(handlers()))
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run() error {
	only := flag.String("only", "", "measure these `parts` and no others: "+parts.Names())
	flag.Parse()
	chosen, err := parts.Choose(*only)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("not done within %s", patience))
	defer cancel()
	return measure(ctx, chosen)
}

// settings leave room for a connection of each of start200's children.
var settings = map[string]string{"max_connections": "300"}

// bench is one private Postgres with the tables in it.
type bench struct {
	folder   string
	postgres *localpg.Cluster
	db       *pgx.Conn
}

func measure(ctx context.Context, chosen tryout.Parts[part]) (err error) {
	b := &bench{}
	if b.folder, err = os.MkdirTemp("", "queuekeeper-bench-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.folder)) }()
	if b.postgres, err = localpg.Start(ctx, localpg.Options{Settings: settings}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.postgres.Stop()) }()
	if b.db, err = pgx.Connect(ctx, b.url()); err != nil {
		return err
	}
	defer b.db.Close(context.WithoutCancel(ctx))
	if err := b.prepare(ctx); err != nil {
		return err
	}
	machine, err := tryout.Machine(ctx, b.db)
	if err != nil {
		return err
	}
	fmt.Println(machine)
	var t table
	for round := range rounds {
		for _, p := range chosen {
			fmt.Fprintf(os.Stderr, "round %d of %d: %s\n", round+1, rounds, p.Name)
			figures, err := p.Do(ctx, b)
			if err != nil {
				return fmt.Errorf("%s: %w", p.Name, err)
			}
			t.add(figures)
		}
	}
	return t.print(os.Stdout)
}

func (b *bench) url() string { return b.postgres.URL("postgres") }

// prepare makes our tables, and the one of the machine's own limit.
func (b *bench) prepare(ctx context.Context) error {
	if err := migrations.Up(ctx, b.db, "", migrations.Options{}); err != nil {
		return err
	}
	_, err := b.db.Exec(ctx, `
create table machine (id integer primary key, n integer not null) with (fillfactor = 50);
insert into machine select id, 0 from generate_series(1, 100) id`)
	return err
}
