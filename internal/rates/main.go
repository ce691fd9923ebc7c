// Command rates shows how exact the limits hold, at the start of a job and at the receiver of its call: in peace,
// and while children are killed, limits change, Postgres restarts and another supervisor takes over. What it runs is
// the real supervisor with its children: this binary starts itself as both, with Go handlers that write down their
// start and call a receiver, a process of its own, which writes down when each call came. What is judged are those
// two logs. Exit status 0 means that all that is promised held.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"queuekeeper/cli"
	"queuekeeper/internal/localpg"
	"queuekeeper/internal/tryout"
)

const patience = 10 * time.Minute // for everything

// part is something to show.
type part = func(context.Context, *rig) ([]section, error)

var parts = tryout.Parts[part]{
	{Name: "rates", Do: showRates},
	{Name: "refusals", Do: showRefusals},
	{Name: "lanes", Do: showLanes},
}

func main() {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "run", "child":
			os.Exit(cli.Main(handlers()))
		case receiveArgument:
			fmt.Fprintln(os.Stderr, "receiver:", receive(os.Args[2]))
			os.Exit(1)
		}
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "rates:", err)
		os.Exit(1)
	}
}

func run() error {
	only := flag.String("only", "", "show these `parts` and no others: "+parts.Names())
	short := flag.Bool("short", false, "a few runs of a few seconds, to try the program itself")
	write := flag.String("write", "", "put the results into this `file`, between its marks, too; needs all parts at full length")
	flag.Parse()
	chosen, err := parts.Choose(*only)
	if err == nil && *write != "" && (*only != "" || *short) {
		err = errors.New("-write is for all results at full length: leave -only and -short out")
	}
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("not done within %s", patience))
	defer cancel()
	r, err := newRig(ctx, *short)
	if err != nil {
		return err
	}
	sections, err := r.show(ctx, chosen)
	if err = errors.Join(err, r.close()); err != nil {
		return err
	}
	return report(r.about, sections, *write)
}

// rig is what all scenes share.
type rig struct {
	folder   string
	self     string // this binary
	about    string // the machine, the date
	short    bool
	postgres *localpg.Cluster
	receiver *receiver
	nginx    *nginx // nil: it is not installed
	scenes   int
}

func newRig(ctx context.Context, short bool) (r *rig, err error) {
	r = &rig{short: short}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.close())
		}
	}()
	if r.self, err = os.Executable(); err != nil {
		return r, err
	}
	if r.folder, err = os.MkdirTemp("", "queuekeeper-rates-"); err != nil {
		return r, err
	}
	if r.postgres, err = localpg.Start(ctx, localpg.Options{}); err != nil {
		return r, err
	}
	db, err := pgx.Connect(ctx, r.postgres.URL("postgres"))
	if err != nil {
		return r, err
	}
	defer db.Close(context.WithoutCancel(ctx))
	if r.about, err = tryout.Machine(ctx, db); err != nil {
		return r, err
	}
	if r.receiver, err = startReceiver(ctx, r.self, filepath.Join(r.folder, "arrivals")); err != nil {
		return r, err
	}
	r.nginx, err = startNginx(ctx, r.folder, r.receiver.address)
	return r, err
}

func (r *rig) show(ctx context.Context, chosen tryout.Parts[part]) (sections []section, err error) {
	for _, p := range chosen {
		shown, err := p.Do(ctx, r)
		if err != nil {
			return sections, fmt.Errorf("%s: %w", p.Name, err)
		}
		sections = append(sections, shown...)
	}
	return sections, nil
}

func (r *rig) close() error {
	var errs []error
	if r.nginx != nil {
		errs = append(errs, r.nginx.end())
	}
	if r.receiver != nil {
		errs = append(errs, r.receiver.end())
	}
	if r.postgres != nil {
		errs = append(errs, r.postgres.Stop())
	}
	return errors.Join(append(errs, os.RemoveAll(r.folder))...)
}
