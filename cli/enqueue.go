package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"queuekeeper/config"
	"queuekeeper/jobs"
)

// maxInput is what is read of stdin, in bytes. The limit of stored args is smaller; blanks and escapes may make the
// input larger than what is stored.
const maxInput = 16 << 20

func enqueueCommand(p *program) *cobra.Command {
	var f enqueueFlags
	cmd := p.printsData(&cobra.Command{
		Use:   "enqueue QUEUE NAME [JSON or -]",
		Short: "Enqueue one job and print its id",
		Long: "Enqueue one job and print its id. The args are JSON, {} if left out; - reads them from stdin. They must be valid\n" +
			"UTF-8 without a byte order mark, at most 1000 levels deep and 1 MiB as stored.\n" +
			"A unique key covers the pending and running jobs of the queue: if one has it, nothing is stored and that job is told.",
		Example: "  queuekeeper enqueue github SyncIssues '{\"company_id\": 1}'\n" +
			"  queuekeeper enqueue mail Send - --in 5m < mail.json\n" +
			"  queuekeeper enqueue mail Digest --at 2030-01-01T08:00:00+01:00 --unique-key digest",
		Args: cobra.RangeArgs(2, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkLane(cmd); err != nil {
				return err
			}
			job, err := f.read(cmd.Flags().Changed)
			if err != nil {
				return err
			}
			job.Queue, job.Name = args[0], args[1]
			if len(args) == 3 {
				if job.Args, err = p.readArgs(args[2]); err != nil {
					return err
				}
			}
			return p.enqueue(cmd.Context(), job)
		},
	})
	cmd.Flags().StringVar(&f.in, "in", "", "start it after this `DURATION` at the earliest: 30s, 5m, 7d")
	cmd.Flags().StringVar(&f.at, "at", "", "start it at this `TIME` at the earliest: 2030-01-01T08:00:00+01:00")
	cmd.Flags().StringVar(&f.job.Lane, "lane", "", "the `LANE` inside the queue (default \"default\")")
	cmd.Flags().StringVar(&f.job.UniqueKey, "unique-key", "", "at most one pending or running job of the queue has this `KEY`")
	cmd.Flags().IntVar(&f.job.MaxAttempts, "max-attempts", 0, "attempts before it is dead (default: what the worker's file says)")
	return cmd
}

// enqueueFlags are the flags of enqueue.
type enqueueFlags struct {
	in, at string
	job    jobs.New
}

// read returns the job as far as the flags tell it.
func (f *enqueueFlags) read(given func(flag string) bool) (job jobs.New, err error) {
	job = f.job
	switch {
	case given("unique-key") && job.UniqueKey == "":
		return job, usage("--unique-key: must not be empty; leave it out for none")
	case given("max-attempts") && job.MaxAttempts < 1:
		return job, usage("--max-attempts: must be 1 to 1000000")
	case given("in") && given("at"):
		return job, usage("--in and --at: give one of them")
	case given("in"):
		job.In, err = parseIn(f.in)
	case given("at"):
		job.RunAt, err = parseAt(f.at)
	}
	return job, err
}

// parseIn reads a duration as the file has it.
func parseIn(text string) (time.Duration, error) {
	if text == "0" {
		return 0, nil
	}
	d, err := config.ParseDuration(text)
	if err != nil {
		return 0, usage(fmt.Sprintf(`--in %q: must be a duration that is not negative, like "30s", "5m", "1h30m" or "7d"`, text))
	}
	return d, nil
}

// parseAt wants an offset: whose noon a bare "12:00" is, neither we nor the reader could say.
func parseAt(text string) (time.Time, error) {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, usage(fmt.Sprintf(`--at %q: must be a time with an offset, like "2030-01-01T08:00:00+01:00" or "…Z"`, text))
	}
	return at, nil
}

func (p *program) readArgs(arg string) ([]byte, error) {
	if arg != "-" {
		return []byte(arg), nil
	}
	text, err := io.ReadAll(io.LimitReader(p.stdin, maxInput+1))
	if err != nil {
		return nil, fmt.Errorf("read stdin: %w", err)
	}
	if len(text) > maxInput {
		return nil, errors.New("read stdin: more than 16 MiB; the limit of args is 1 MiB as stored")
	}
	return text, nil
}

func (p *program) enqueue(ctx context.Context, job jobs.New) error {
	db, err := p.connect(ctx)
	if err != nil {
		return err
	}
	defer db.Close(ctx)
	stored, err := db.schema.Enqueue(ctx, db, job)
	if err != nil {
		return err
	}
	if why := db.unserved(job.Queue, job.Name); why != "" {
		p.lines("warning: ", why)
	}
	if stored.Existing {
		p.lines("", fmt.Sprintf("nothing stored: job %d of queue %s has this unique key and is pending or running", stored.ID, job.Queue))
	}
	if p.json {
		return printJSON(p.stdout, stored)
	}
	_, err = fmt.Fprintln(p.stdout, stored.ID)
	return err
}
