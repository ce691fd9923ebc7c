package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"queuekeeper/jobs"
)

const partly = "\nJobs that cannot be changed are told on stderr, the others are changed all the same; the exit status is then 1."

func requeueCommand(p *program) *cobra.Command {
	var allDead bool
	var queue string
	cmd := p.printsData(&cobra.Command{
		Use:   "requeue ID...",
		Short: "Give dead jobs a new life: pending and due now",
		Long: "Give dead jobs a new life: pending and due now, with all attempts before them. A job whose unique key a pending or\n" +
			"running job has is skipped." + partly,
		Example: "  queuekeeper jobs requeue 42 43\n  queuekeeper jobs requeue --all-dead --queue github",
		RunE: func(cmd *cobra.Command, args []string) error {
			if allDead != (queue != "") || allDead == (len(args) > 0) {
				return usage("requeue: give ids, or --all-dead with --queue")
			}
			return p.change(cmd.Context(), "requeued", args, func(ctx context.Context, db *database, ids []int64) ([]jobs.Change, error) {
				if allDead {
					return db.schema.RequeueDead(ctx, db, queue)
				}
				return db.schema.Requeue(ctx, db, ids...)
			})
		},
	})
	cmd.Flags().BoolVar(&allDead, "all-dead", false, "all dead jobs of the queue")
	cmd.Flags().StringVar(&queue, "queue", "", "the `QUEUE` of --all-dead")
	return cmd
}

func cancelCommand(p *program) *cobra.Command {
	return p.printsData(&cobra.Command{
		Use:   "cancel ID...",
		Short: "Make pending and running jobs dead",
		Long: "Make pending and running jobs dead, with last_error \"cancelled\". A handler that is still executing is told to end, and\n" +
			"what it answers is dropped." + partly,
		Example: "  queuekeeper jobs cancel 42",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.change(cmd.Context(), "cancelled", args, func(ctx context.Context, db *database, ids []int64) ([]jobs.Change, error) {
				return db.schema.Cancel(ctx, db, ids...)
			})
		},
	})
}

func deleteCommand(p *program) *cobra.Command {
	return p.printsData(&cobra.Command{
		Use:     "delete ID...",
		Short:   "Delete jobs that are not running",
		Long:    "Delete jobs that are not running. A running one is cancelled first." + partly,
		Example: "  queuekeeper jobs delete 42",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.change(cmd.Context(), "deleted", args, func(ctx context.Context, db *database, ids []int64) ([]jobs.Change, error) {
				return db.schema.Delete(ctx, db, ids...)
			})
		},
	})
}

// change does one of the three and tells of each job what became of it; done is the word for it.
func (p *program) change(ctx context.Context, done string, args []string,
	do func(context.Context, *database, []int64) ([]jobs.Change, error),
) error {
	ids, err := parseIDs(args)
	if err != nil {
		return err
	}
	db, err := p.connect(ctx)
	if err != nil {
		return err
	}
	defer db.Close(ctx)
	changes, err := do(ctx, db, ids)
	if printErr := p.printChanges(done, changes); printErr != nil && err == nil {
		err = printErr
	}
	return err
}

// printChanges returns errTold if not all was done.
func (p *program) printChanges(done string, changes []jobs.Change) error {
	type told struct {
		ID      int64      `json:"id"`
		Was     jobs.State `json:"was"`
		Changed bool       `json:"changed"`
		Reason  string     `json:"reason,omitempty"`
	}
	list := make([]told, len(changes))
	var failed error
	for i, c := range changes {
		list[i] = told{ID: c.ID, Was: c.Was, Changed: c.Err == nil}
		switch {
		case c.Err != nil:
			failed = errTold
			list[i].Reason = c.Err.Error()
			p.lines("", fmt.Sprintf("job %d: skipped: %v", c.ID, c.Err))
		case p.json:
		case c.Was == jobs.Running:
			fmt.Fprintf(p.stdout, "job %d: %s; it was still executing\n", c.ID, done)
		default:
			fmt.Fprintf(p.stdout, "job %d: %s\n", c.ID, done)
		}
	}
	if p.json {
		if err := printJSON(p.stdout, list); err != nil {
			return err
		}
	}
	return failed
}
