package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"queuekeeper/config"
	"queuekeeper/internal/logs"
	"queuekeeper/internal/wire"
	"queuekeeper/migrations"
	"queuekeeper/supervisor"
)

// times are the fixed times of the program. Tests shorten them.
var times = wire.Default()

func runCommand(p *program) *cobra.Command {
	return &cobra.Command{
		Use:   "run",
		Short: "Run the supervisor: one child process per queue",
		Long: "Run the supervisor: one child process per queue. It refuses a file with a fault before anything is started, and\n" +
			"waits for a database that is down. TERM and Ctrl-C let running jobs finish, a second Ctrl-C or QUIT ends them;\n" +
			"either way every lease is released within shutdown_timeout. The exit status is 0 if all were, 1 if one may remain.",
		Example: "  queuekeeper run -c /etc/queues.toml",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			file, err := p.load()
			if err != nil {
				return err
			}
			if faults := p.withoutHandlers(file); len(faults) > 0 {
				return faults
			}
			return p.supervise(cmd.Context(), file)
		},
	}
}

// supervise runs the supervisor until it is told to leave.
func (p *program) supervise(ctx context.Context, file config.File) error {
	log, flush := logs.New(p.stderr, file.LogFormat == "json")
	defer flush()
	looking, done := context.WithCancel(ctx)
	looked := make(chan struct{})
	go func() {
		defer close(looked)
		p.warnAtStart(looking, file, log)
	}()
	status := supervisor.Run(ctx, supervisor.Options{File: file, Log: log, Times: times})
	done()
	<-looked
	if status != wire.ExitOK {
		return exitCode(status)
	}
	return nil
}

// warnAtStart tells which queues have waiting jobs and no worker, if the database is there to be asked: starting
// does not depend on it.
func (p *program) warnAtStart(ctx context.Context, file config.File, log hclog.Logger) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	db, err := open(ctx, file)
	if err != nil {
		return // every child says so
	}
	defer db.Close(context.WithoutCancel(ctx))
	if _, err := migrations.Check(ctx, db.Conn, file.Schema); err != nil {
		return
	}
	waiting, err := unserved(ctx, db)
	if err != nil {
		log.Warn("queues without a worker not looked for", "error", hclog.Quote(err.Error()))
	}
	for _, queue := range slices.Sorted(maps.Keys(waiting)) {
		log.Warn("queue has waiting jobs and no worker", "queue", queue, "waiting", waiting[queue], "file", file.Path)
	}
}

// exitCode ends the program with a status that was explained already.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit status %d", int(e)) }
