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
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"queuekeeper/cli"
	"queuekeeper/internal/localpg"
	"queuekeeper/migrations"
)

const (
	rounds   = 3
	patience = 12 * time.Minute // for everything
)

// part is something to measure, once in every round.
type part struct {
	name    string
	measure func(context.Context, *bench) ([]figure, error)
}

var parts = []part{
	{"serial", serial},
	{"batch", batch},
	{"latency", latency},
	{"pace", pace},
	{"idle", idle},
	{"start200", start200},
	{"kill", kill},
	{"lanes", lanes},
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
	only := flag.String("only", "", "measure these `parts` and no others: "+strings.Join(names(parts), ","))
	flag.Parse()
	chosen, err := choose(*only)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("not done within %s", patience))
	defer cancel()
	return measure(ctx, chosen)
}

func names(parts []part) (names []string) {
	for _, p := range parts {
		names = append(names, p.name)
	}
	return names
}

// choose returns the parts a list names; "" names all.
func choose(list string) ([]part, error) {
	if list == "" {
		return parts, nil
	}
	var chosen []part
	for _, name := range strings.Split(list, ",") {
		i := slices.Index(names(parts), name)
		if i < 0 {
			return nil, fmt.Errorf("no part is called %q: there are %s", name, strings.Join(names(parts), ", "))
		}
		chosen = append(chosen, parts[i])
	}
	return chosen, nil
}

// settings leave room for a connection of each of start200's children.
var settings = map[string]string{"max_connections": "300"}

// bench is one private Postgres with the tables in it.
type bench struct {
	folder   string
	postgres *localpg.Cluster
	db       *pgx.Conn
}

func measure(ctx context.Context, chosen []part) (err error) {
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
	machine, err := b.machine(ctx)
	if err != nil {
		return err
	}
	fmt.Println(machine)
	var t table
	for round := range rounds {
		for _, p := range chosen {
			fmt.Fprintf(os.Stderr, "round %d of %d: %s\n", round+1, rounds, p.name)
			figures, err := p.measure(ctx, b)
			if err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
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
