package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"queuekeeper/config"
	"queuekeeper/internal/logs"
	"queuekeeper/internal/steward"
	"queuekeeper/internal/wire"
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
			"either way every lease is released within shutdown_timeout. The exit status is 0 if all were, 1 if one may remain.\n" +
			"HUP takes on a changed file. USR1 writes the status to the log, USR2 claims nothing more until the next HUP.",
		Example: "  queuekeeper run -c /etc/queues.toml",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			supervisor.Catch()
			file, err := p.load()
			if err != nil {
				return err
			}
			if faults := p.startFaults(file); len(faults) > 0 {
				return faults
			}
			return p.supervise(cmd.Context(), file, true)
		},
	}
}

// supervise runs the supervisor until it is told to leave, and beside it the steward, which may fail.
func (p *program) supervise(ctx context.Context, file config.File, reloads bool) error {
	log, flush := logs.New(p.stderr, file.LogFormat == "json")
	defer flush()
	st := steward.New(file, log, times)
	stewarding, done := context.WithCancel(context.WithoutCancel(ctx))
	left := make(chan struct{})
	go func() {
		defer close(left)
		st.Run(stewarding)
	}()
	o := supervisor.Options{File: file, Log: log, Times: times, Show: st.Show, Adopted: st.Use}
	if reloads {
		o.Reload = func(ctx context.Context, now config.File) (config.File, error) { return p.reload(ctx, now, st.Try) }
	}
	status := supervisor.Run(ctx, o)
	done()
	<-left
	if status != wire.ExitOK {
		return exitCode(status)
	}
	return nil
}

// exitCode ends the program with a status that was explained already.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit status %d", int(e)) }
