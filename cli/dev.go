package cli

import (
	"context"
	"fmt"
	"hash/fnv"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"queuekeeper/config"
	"queuekeeper/internal/localpg"
	"queuekeeper/jobs"
	"queuekeeper/migrations"
)

func devCommand(p *program) *cobra.Command {
	var sample int
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run everything here: a private Postgres, the tables, the supervisor",
		Long: "Run everything here: a private Postgres whose data is kept for the next time, the tables, and the supervisor.\n" +
			"DATABASE_URL is set to that Postgres. Ctrl-C ends all of it.",
		Example: "  queuekeeper dev\n  queuekeeper dev --sample 10",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.dev(cmd.Context(), sample)
		},
	}
	cmd.Flags().IntVar(&sample, "sample", 0, "enqueue `N` jobs in each queue to look at")
	return cmd
}

func (p *program) dev(ctx context.Context, sample int) error {
	if sample < 0 {
		return usage(fmt.Sprintf("--sample %d: must not be negative", sample))
	}
	if err := p.checkForDev(); err != nil {
		return err
	}
	path, err := filepath.Abs(p.configPath())
	if err != nil {
		return err
	}
	dir, err := devFolder(filepath.Dir(path))
	if err != nil {
		return err
	}
	p.lines("", "starting Postgres in "+dir)
	cluster, err := localpg.Start(ctx, localpg.Options{Dir: dir})
	if err != nil {
		return err
	}
	defer cluster.Stop()
	address := cluster.URL("postgres")
	if err := os.Setenv("DATABASE_URL", address); err != nil {
		return err
	}
	file, err := p.load()
	if err != nil {
		return err
	}
	if err := p.prepareDev(ctx, file, sample); err != nil {
		return err
	}
	p.lines("", devHelp(file, address))
	// A terminal that closes ends all of it, as Ctrl-C does.
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGHUP)
	defer stop()
	return p.supervise(ctx, file, false)
}

// checkForDev tells a fault of the file before anything is started, and keeps dev away from every database but its
// own.
func (p *program) checkForDev() error {
	const standIn = "postgres:///queuekeeper-dev" // the address is not known yet
	file, err := config.Load(p.configPath(), func(name string) (string, bool) {
		if name == "DATABASE_URL" {
			return standIn, true
		}
		return p.getenv(name)
	})
	if faults := p.startFaults(file); err == nil && len(faults) > 0 {
		return faults
	}
	if err == nil && file.DatabaseURL != standIn {
		err = fmt.Errorf("%w: %s names a database, and dev runs on its own only: leave out database_url, or use `run`",
			errConfig, file.Path)
	}
	return err
}

// devFolder is where the data of a project's private Postgres is: two projects do not share one.
func devFolder(project string) (string, error) {
	base, err := localpg.KeptDir()
	if err != nil {
		return "", err
	}
	h := fnv.New32a()
	h.Write([]byte(project))
	return fmt.Sprintf("%s-%08x", base, h.Sum32()), nil
}

// prepareDev makes the tables and the sample jobs.
func (p *program) prepareDev(ctx context.Context, file config.File, sample int) error {
	db, err := open(ctx, file)
	if err != nil {
		return err
	}
	defer db.Close(ctx)
	if err := migrations.Up(ctx, db.Conn, file.Schema, migrations.Options{}); err != nil {
		return err
	}
	var all []jobs.New
	for n := range sample {
		for _, w := range file.Workers {
			name := "Sample"
			if len(w.Jobs) > 0 {
				name = w.Jobs[n%len(w.Jobs)]
			}
			all = append(all, jobs.New{Queue: w.Queue, Name: name, Args: map[string]int{"sample": n + 1}})
		}
	}
	if len(all) == 0 {
		return nil
	}
	_, err = db.schema.EnqueueMany(ctx, db, all)
	return err
}

// devHelp is what to try next, each line to be pasted into another terminal.
func devHelp(file config.File, address string) string {
	first := file.Workers[0]
	name, table, self := "Sample", "jobs", os.Args[0]
	if len(first.Jobs) > 0 {
		name = first.Jobs[0]
	}
	if file.Schema != "" {
		table = fmt.Sprintf("%q.jobs", file.Schema)
	}
	if file.Path != defaultConfig {
		self += " -c " + file.Path
	}
	return fmt.Sprintf(`
Try in another terminal, in this folder:
  export DATABASE_URL='%[1]s'
  psql "$DATABASE_URL" -c "insert into %[4]s (queue, name, args) values ('%[2]s', '%[3]s', '{\"n\": 1}')"
  %[5]s enqueue %[2]s %[3]s '{"n": 2}'
  %[5]s status
  pkill -9 -P %[7]d -f ': %[2]s child'     # a new process takes over; a job that was running comes back
Commands may be changed at any time: the next job runs what is there then. After a change of %[6]s
press Ctrl-C here and start again.

`, address, first.Queue, name, table, self, file.Path, os.Getpid())
}
