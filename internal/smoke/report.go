package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5"

	"queuekeeper/internal/windows"
)

// row is a job as the table shows it at the end.
type row struct {
	ID        int64
	Queue     string
	State     string
	Attempts  int
	StartedAt *time.Time
	LastError *string
}

const rowsSQL = `select id, queue, state, attempts, started_at, last_error from jobs order by id`

// report prints a line per queue and returns what was not as promised.
func report(ctx context.Context, out io.Writer, db *pgx.Conn, p program, queues []queue) error {
	reply, err := db.Query(ctx, rowsSQL)
	if err != nil {
		return err
	}
	rows, err := pgx.CollectRows(reply, pgx.RowToStructByPos[row])
	if err != nil {
		return err
	}
	ran, err := readMarks(filepath.Join(p.folder, marks))
	if err != nil {
		return err
	}
	return judge(out, queues, rows, ran)
}

func judge(out io.Writer, queues []queue, rows []row, ran map[int64][]time.Time) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "queue\tjobs\tdone\tlimit/s\trate/s\twindow\tmost\tallowed\t")
	unknown := maps.Clone(ran)
	var faults []error
	for _, q := range queues {
		o := outcome{queue: q}
		for _, r := range rows {
			if r.Queue == q.name {
				o.add(r, ran[r.ID])
				delete(unknown, r.ID)
			}
		}
		fmt.Fprintln(table, o.line())
		faults = append(faults, o.judge()...)
	}
	for _, id := range slices.Sorted(maps.Keys(unknown)) {
		faults = append(faults, fmt.Errorf("job %d ran, but its transaction was rolled back", id))
	}
	return errors.Join(append(faults, table.Flush())...)
}

// outcome is what became of one queue.
type outcome struct {
	queue
	rows   int
	done   int
	starts []time.Time
	faults []error // of single jobs
}

func (o *outcome) add(r row, ran []time.Time) {
	o.rows++
	if r.State == "done" {
		o.done++
	}
	if r.State == "done" && r.Attempts == 1 && r.StartedAt != nil && len(ran) == 1 {
		o.start(r.ID, *r.StartedAt, ran[0])
		return
	}
	o.starts = append(o.starts, ran...)
	o.faults = append(o.faults, o.explain(r, len(ran)))
}

// start takes the earlier of what the table and the handler say. Both are late, never early: the one by the way of
// the outcome to Postgres, the other by the start of a process.
func (o *outcome) start(id int64, row, handler time.Time) {
	const most = 2 * time.Second
	if apart := handler.Sub(row).Abs(); apart > most {
		o.faults = append(o.faults, o.fault("start of job %d: its row and its handler are %s apart, want at most %s", id, apart, most))
	}
	if handler.Before(row) {
		row = handler
	}
	o.starts = append(o.starts, row)
}

func (o *outcome) explain(r row, ran int) error {
	why := ""
	if r.LastError != nil {
		why = ": " + *r.LastError
	}
	switch ran {
	case 0:
		return o.fault("job %d was lost: it is %s and never ran%s", r.ID, r.State, why)
	case 1:
		return o.fault("job %d ran and is %s after %d attempts, want done after one%s", r.ID, r.State, r.Attempts, why)
	default:
		return o.fault("job %d ran %d times, want once%s", r.ID, ran, why)
	}
}

func (o *outcome) judge() []error {
	var faults []error
	if o.rows != o.jobs {
		faults = append(faults, o.fault("%d jobs are in the table, want %d", o.rows, o.jobs))
	}
	if most, allowed := o.most(), o.allowed(); most > allowed {
		faults = append(faults, o.fault("%d starts in a window of %s, want at most %d", most, o.window(), allowed))
	}
	const told = 3 // the first few say what is wrong
	if more := len(o.faults) - told; more > 0 {
		o.faults = append(o.faults[:told], o.fault("and %d faults more", more))
	}
	return append(faults, o.faults...)
}

func (o *outcome) line() string {
	return fmt.Sprintf("%s\t%d\t%d\t%g\t%.2f\t%s\t%d\t%d\t",
		o.name, o.jobs, o.done, o.perSecond, o.rate(), o.window(), o.most(), o.allowed())
}

func (o *outcome) window() time.Duration { return windows.Shortest(o.perSecond) }
func (o *outcome) allowed() int          { return windows.Allowed(o.perSecond, o.burst, o.window()) }
func (o *outcome) most() int             { return windows.Largest(o.starts, o.window()) }

// rate is in starts per second. The burst at the beginning took no time and does not count.
func (o *outcome) rate() float64 {
	if len(o.starts) <= o.burst {
		return 0
	}
	first, last := slices.MinFunc(o.starts, time.Time.Compare), slices.MaxFunc(o.starts, time.Time.Compare)
	return float64(len(o.starts)-o.burst) / last.Sub(first).Seconds()
}

func (o *outcome) fault(format string, args ...any) error {
	return fmt.Errorf("queue %s: %s", o.name, fmt.Sprintf(format, args...))
}
