package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"queuekeeper/jobs"
)

func jobsCommand(p *program) *cobra.Command {
	group := &cobra.Command{
		Use:     "jobs",
		Short:   "Look at jobs and change them: the dead letter and everything else",
		Example: "  queuekeeper jobs list --state dead\n  queuekeeper jobs show 42\n  queuekeeper jobs requeue 42",
		RunE: func(*cobra.Command, []string) error {
			return usage("jobs: must be followed by list, show, requeue, cancel or delete")
		},
	}
	group.AddCommand(listCommand(p), showCommand(p), requeueCommand(p), cancelCommand(p), deleteCommand(p))
	return group
}

func listCommand(p *program) *cobra.Command {
	var filter jobs.Filter
	cmd := p.printsData(&cobra.Command{
		Use:   "list",
		Short: "List jobs, newest first, without their args",
		Long: "List jobs, newest first, without their args. --below takes the last id of the page before.\n" +
			"Times are in the time zone of the database session, with its offset.",
		Example: "  queuekeeper jobs list --queue github --state dead --limit 20 --below 4711",
		Args:    takes(0, "flags alone; a queue goes behind --queue"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkLane(cmd); err != nil {
				return err
			}
			return p.list(cmd.Context(), filter)
		},
	})
	cmd.Flags().StringVar(&filter.Queue, "queue", "", "only of this `QUEUE`")
	cmd.Flags().StringVar(&filter.Name, "name", "", "only with this `NAME`")
	cmd.Flags().StringVar(&filter.Lane, "lane", "", "only of this `LANE`")
	cmd.Flags().StringVar((*string)(&filter.State), "state", "", "only in this `STATE`: pending, running, done or dead")
	cmd.Flags().Int64Var(&filter.Below, "below", 0, "only ids below this `ID`")
	cmd.Flags().IntVar(&filter.Limit, "limit", jobs.DefaultListed, "at most so many")
	return cmd
}

func (p *program) list(ctx context.Context, filter jobs.Filter) error {
	if filter.Limit < 1 {
		return usage("--limit: must be at least 1")
	}
	db, err := p.connect(ctx)
	if err != nil {
		return err
	}
	defer db.Close(ctx)
	list, err := db.schema.List(ctx, db, filter)
	if err != nil {
		return err
	}
	if p.json {
		if list == nil {
			list = []jobs.Listed{} // [], not null
		}
		return printJSON(p.stdout, list)
	}
	rows := [][]string{{"ID", "QUEUE", "NAME", "LANE", "STATE", "ATTEMPTS", "RUN AT", "LAST ERROR"}}
	for _, l := range list {
		rows = append(rows, []string{strconv.FormatInt(l.ID, 10), l.Queue, l.Name, laneText(l.Lane), string(l.State),
			attempts(l.Attempts, l.Excused, l.MaxAttempts), l.RunAt, l.LastError})
	}
	table(p.stdout, rows)
	return nil
}

// attempts are those that count, of how many.
func attempts(all, excused int, most *int) string {
	text := strconv.Itoa(all - excused)
	if most != nil {
		text += "/" + strconv.Itoa(*most)
	}
	return text
}

func showCommand(p *program) *cobra.Command {
	return p.printsData(&cobra.Command{
		Use:     "show ID",
		Short:   "Show everything about one job",
		Example: "  queuekeeper jobs show 42\n  queuekeeper jobs show 42 --json | jq .args",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ids, err := parseIDs(args)
			if err != nil {
				return err
			}
			return p.show(cmd.Context(), ids[0])
		},
	})
}

func (p *program) show(ctx context.Context, id int64) error {
	db, err := p.connect(ctx)
	if err != nil {
		return err
	}
	defer db.Close(ctx)
	job, err := db.schema.Show(ctx, db, id)
	if err != nil {
		return err
	}
	if p.json {
		return printJSON(p.stdout, shownJSON(job))
	}
	table(p.stdout, shownRows(job))
	if job.LastError != nil { // may have many lines
		fmt.Fprintln(p.stdout, "last error:")
		for line := range strings.Lines(*job.LastError) {
			fmt.Fprintln(p.stdout, "  "+shown(strings.TrimRight(line, "\r\n")))
		}
	}
	return nil
}

// shownJSON has the args as JSON, every digit of them. A raw INSERT may nest them deeper than JSON libraries read.
func shownJSON(job jobs.Shown) any {
	type shown jobs.Shown
	with := struct {
		shown
		Args        json.RawMessage `json:"args"`
		ArgsOmitted string          `json:"args_omitted,omitempty"`
	}{shown: shown(job), Args: json.RawMessage(job.Args)}
	if err := jobs.CheckArgsDepth([]byte(job.Args)); err != nil {
		with.Args, with.ArgsOmitted = json.RawMessage("null"), err.Error()
	}
	return with
}

func shownRows(job jobs.Shown) [][]string {
	number := func(n *int64) *string {
		if n == nil {
			return nil
		}
		text := strconv.FormatInt(*n, 10)
		return &text
	}
	rows := [][]string{
		{"id:", strconv.FormatInt(job.ID, 10)},
		{"queue:", job.Queue},
		{"name:", job.Name},
		{"args:", shortArgs(job.Args)},
		{"lane:", laneText(job.Lane)},
		{"state:", string(job.State)},
		{"attempts:", fmt.Sprintf("%s (started %d times, %d excused, %d of them throttled)",
			attempts(job.Attempts, job.Excused, job.MaxAttempts), job.Attempts, job.Excused, job.Throttled)},
		{"requeues:", strconv.Itoa(job.Requeues)},
		{"created at:", job.CreatedAt},
		{"run at:", job.RunAt},
	}
	for _, optional := range []struct {
		label string
		value *string
	}{
		{"unique key:", job.UniqueKey}, {"locked at:", job.LockedAt}, {"locked by:", job.LockedBy},
		{"epoch:", number(job.Epoch)}, {"started at:", job.StartedAt}, {"finished at:", job.FinishedAt},
	} {
		if optional.value != nil {
			rows = append(rows, []string{optional.label, *optional.value})
		}
	}
	return rows
}

// shortArgs is as much of the args as a terminal bears.
func shortArgs(args string) string {
	const most = 16 << 10
	if len(args) <= most {
		return args
	}
	return fmt.Sprintf("%s… (the first %d of %d bytes; --json has all)", strings.ToValidUTF8(args[:most], ""), most, len(args))
}

func parseIDs(args []string) ([]int64, error) {
	ids := make([]int64, len(args))
	for i, arg := range args {
		id, err := strconv.ParseInt(arg, 10, 64)
		if err != nil {
			return nil, usage(fmt.Sprintf("%q: must be the id of a job, a whole number", arg))
		}
		ids[i] = id
	}
	return ids, nil
}
