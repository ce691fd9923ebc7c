// Package cli is the command line of queuekeeper: one file per command, and the wiring of everything else.
// A program with Go handlers calls Main from its own main.
package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"queuekeeper/child"
	"queuekeeper/config"
	"queuekeeper/handler"
	"queuekeeper/internal/wire"
	"queuekeeper/jobs"
)

// Main runs the command line in os.Args and returns the exit status of the process: 0, 1 for a failure, 64 for a
// wrong command line, 78 for a wrong configuration. Jobs whose worker has no command go to handlers.
func Main(handlers jobs.Handlers) int {
	// A child is started by its supervisor, not by people: no flags, no help, nothing between it and its pipes.
	if len(os.Args) > 1 && os.Args[1] == "child" {
		return child.Main(handlers)
	}
	if len(os.Args) > 1 && os.Args[1] == "limit" { // and so is a command with a memory limit, by a child
		return handler.Limit(os.Args[2:])
	}
	p := &program{
		handlers: handlers,
		stdin:    os.Stdin,
		stdout:   bufio.NewWriter(os.Stdout),
		stderr:   os.Stderr,
		getenv:   os.LookupEnv,
	}
	return p.main(os.Args[1:])
}

// program is one run of the command line: where it reads and writes, and the flags that all commands have.
type program struct {
	handlers jobs.Handlers
	stdin    io.Reader
	stdout   *bufio.Writer // data; keeps its first error
	stderr   io.Writer     // the rest
	getenv   func(string) (string, bool)

	config  *string // --config; nil: not given
	json    bool
	command string // the one that ran, for whoever needs its help
}

const defaultConfig = "queues.toml"

func (p *program) main(args []string) int {
	running := false
	root := p.root(func() { running = true })
	root.SetArgs(args)
	cmd, err := root.ExecuteC()
	p.command = cmd.CommandPath()
	if err != nil && !running {
		// Cobra's own: an unknown command or flag, wrong arguments. It indents what may have been meant by tabs.
		err = usage(strings.ReplaceAll(strings.TrimSpace(err.Error()), "\t", "  "))
	}
	// A command that could not say its data did not do all of its work: a full disk, a reader that went away.
	if flushErr := p.stdout.Flush(); flushErr != nil && err == nil {
		err = fmt.Errorf("write output: %w", flushErr)
	}
	p.tell(err)
	return exitStatus(err)
}

func (p *program) root(running func()) *cobra.Command {
	root := &cobra.Command{
		Use:   "queuekeeper",
		Short: "Job queues in Postgres: one worker per queue, each at its own rate",
		Example: "  queuekeeper init > queues.toml\n  queuekeeper migrate\n  queuekeeper run\n" +
			"  queuekeeper enqueue hello Greet '{\"who\": \"world\"}'",
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
		PersistentPreRun: func(cmd *cobra.Command, _ []string) {
			running()
			if f := cmd.Flags().Lookup("config"); f.Changed {
				path := f.Value.String()
				p.config = &path
			}
		},
	}
	root.SetOut(p.stdout)
	root.SetErr(p.stderr)
	root.PersistentFlags().StringP("config", "c", defaultConfig, "the configuration `FILE`")
	for _, add := range commands {
		root.AddCommand(add(p))
	}
	return root
}

// commands are in the order of the day, but cobra's help sorts them by name.
var commands = []func(*program) *cobra.Command{
	runCommand, devCommand, initCommand, checkCommand, migrateCommand, enqueueCommand, statusCommand, jobsCommand,
	pauseCommand, resumeCommand, versionCommand,
}

// printsData gives a command that prints data its --json.
func (p *program) printsData(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().BoolVar(&p.json, "json", false, "print JSON")
	return cmd
}

// usageError is a wrong command line.
type usageError struct{ text string }

func usage(text string) error { return usageError{text} }

func (e usageError) Error() string { return e.text }

// errConfig is a wrong configuration that is not the fault of a file's line.
var errConfig = errors.New("configuration")

// errTold is a failure that was already told, item by item.
var errTold = errors.New("told already")

func exitStatus(err error) int {
	var wrong usageError
	var faults config.Faults
	var code exitCode
	switch {
	case err == nil:
		return wire.ExitOK
	case errors.As(err, &code):
		return int(code)
	case errors.As(err, &wrong), errors.Is(err, jobs.ErrInvalid):
		return wire.ExitUsage
	case errors.As(err, &faults), errors.Is(err, errConfig):
		return wire.ExitConfig
	}
	return wire.ExitFailed
}

// tell writes an error to stderr. Faults of a file stand alone, so that editors find their way from them.
func (p *program) tell(err error) {
	var wrong usageError
	var faults config.Faults
	var code exitCode
	switch {
	case err == nil, errors.Is(err, errTold), errors.As(err, &code):
	case errors.As(err, &faults):
		p.lines("", faults.Error())
	case errors.As(err, &wrong):
		p.lines("queuekeeper: ", err.Error())
		p.lines("", "try: "+p.command+" --help")
	default:
		p.lines("queuekeeper: ", err.Error())
	}
}

// lines writes text to stderr, each line after the prefix.
func (p *program) lines(prefix, text string) {
	for line := range strings.Lines(text) {
		fmt.Fprintln(p.stderr, prefix+shown(strings.TrimSuffix(line, "\n")))
	}
}
