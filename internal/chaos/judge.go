package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"queuekeeper/internal/windows"
)

// row is a job as the table shows it at the end.
type row struct {
	ID        int64
	Queue     string
	Lane      string
	Name      string
	State     string
	Attempts  int
	Excused   int
	StartedAt *time.Time
	LastError *string
}

const rowsSQL = `select id, queue, lane, name, state, attempts, excused, started_at, last_error from jobs order by id`

// judge compares what the table says of every job with what its handler has marked.
func (r *round) judge(ctx context.Context) error {
	var rows []row
	err := r.db.do(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		reply, err := conn.Query(ctx, rowsSQL)
		if err != nil {
			return err
		}
		rows, err = pgx.CollectRows(reply, pgx.RowToStructByPos[row])
		return err
	})
	if err != nil {
		return err
	}
	ran, err := readMarks(filepath.Join(r.folder, marksFile))
	if err != nil {
		return err
	}
	for _, attempts := range ran {
		r.repeats += len(attempts) - 1
	}
	if len(rows) != r.count() {
		r.faultf("jobs in the table: got %d, want %d", len(rows), r.count())
	}
	for _, err := range judge(r.queues, rows, ran, r.noted) {
		r.faultf("%w", err)
	}
	return nil
}

// judge returns what was not as promised. ran is by job.
func judge(queues []queue, rows []row, ran map[int64][]attempt, noted []fault) (wrong []error) {
	for _, q := range queues {
		var starts []time.Time
		lanes := map[string][]started{}
		var faults []fault
		for _, f := range noted {
			if f.concerns(q) {
				if q.command { // it marks its start only once it has got going
					f.to = f.to.Add(late)
				}
				faults = append(faults, f)
			}
		}
		for _, row := range rows {
			if row.Queue == q.name {
				if err := judgeJob(row, ran[row.ID], faults); err != nil {
					wrong = append(wrong, fmt.Errorf("queue %s: job %d (%s, %s, %d attempts, %d excused%s): %w",
						q.name, row.ID, row.Name, row.State, row.Attempts, row.Excused, why(row), err))
				}
				for _, at := range startsOf(row, ran[row.ID]) {
					starts = append(starts, at)
					lanes[row.Lane] = append(lanes[row.Lane], started{row.ID, at})
				}
			}
		}
		wrong = append(wrong, judgePace(q, starts)...)
		for lane, starts := range lanes {
			wrong = append(wrong, judgeLane(q, lane, starts)...)
		}
	}
	return wrong
}

func (f fault) concerns(q queue) bool {
	return (f.queue == everyQueue || f.queue == q.name) && (!f.commands || q.command)
}

func why(r row) string {
	if r.LastError == nil {
		return ""
	}
	return fmt.Sprintf(", %.200s", *r.LastError)
}

func judgeJob(r row, ran []attempt, faults []fault) error {
	if len(ran) == 0 {
		return errors.New("it was lost: it never started")
	}
	for i, a := range ran {
		switch {
		case len(a.starts) != 1:
			return fmt.Errorf("attempt %d: got %d starts, want one", a.number, len(a.starts))
		case a.crowd:
			return fmt.Errorf("attempt %d ran beside more of its queue than may run at the same time", a.number)
		case i > 0 && ran[i-1].end != failMark && !explained(ran[i-1], a, faults):
			return fmt.Errorf("%s was followed by %s, with nothing in between that ends attempts", ran[i-1], a)
		}
	}
	return errors.Join(judgeEnd(r, ran[len(ran)-1]), judgeCount(r, ran, faults))
}

// judgeEnd compares the last attempt with the row: it is the one the row knows, and ended as the row says.
func judgeEnd(r row, last attempt) error {
	state, end := "done", doneMark
	if r.Name == refuseName {
		state, end = "dead", refuseMark
	}
	if r.State != state || last.end != end || last.number != r.Attempts {
		return fmt.Errorf("got %s after attempt %d ended %q, want %s after attempt %d ended %q", r.State, last.number, last.end, state, r.Attempts, end)
	}
	return nil
}

// explained reports whether something happened that ends an attempt, after this one started and before the next did.
func explained(this, next attempt, faults []fault) bool { return len(between(this, next, faults)) > 0 }

func between(this, next attempt, faults []fault) (found []fault) {
	for _, f := range faults {
		if !f.to.Before(this.starts[0]) && !f.from.After(next.starts[0]) {
			found = append(found, f)
		}
	}
	return found
}

// judgeCount sees that what counts is the last attempt, those that failed, and those that died with their process. Of
// these some may never have started; and of those in whose time something else happened too nobody knows.
func judgeCount(r row, ran []attempt, faults []fault) error {
	least, most := 1, 1
	for _, f := range faults {
		if f.kills {
			most++
		}
	}
	for i := range len(ran) - 1 {
		switch {
		case ran[i].end == failMark:
			least, most = least+1, most+1
		case !slices.ContainsFunc(between(ran[i], ran[i+1], faults), func(f fault) bool { return !f.kills }):
			least++
		}
	}
	if counted := r.Attempts - r.Excused; counted < least || counted > most {
		return fmt.Errorf("attempts that count: got %d, want %d to %d", counted, least, most)
	}
	return nil
}

// startsOf are the starts of a job. Of the last the row tells too when it was; both are late, never early.
func startsOf(r row, ran []attempt) (starts []time.Time) {
	for _, a := range ran {
		starts = append(starts, a.starts...)
	}
	if last := len(starts) - 1; last >= 0 && r.StartedAt != nil && r.StartedAt.Before(starts[last]) {
		starts[last] = *r.StartedAt
	}
	return starts
}

// lateness is how much later than its turn a mark may be. It is less than any interval between turns.
const lateness = 20 * time.Millisecond

func judgePace(q queue, starts []time.Time) (wrong []error) {
	if q.quota > 0 {
		if got := windows.Largest(starts, quotaWindow-lateness); got > q.quota {
			wrong = append(wrong, fmt.Errorf("queue %s: starts in a window of %v: got %d, want at most %d", q.name, quotaWindow, got, q.quota))
		}
	}
	if q.perSecond == 0 {
		return wrong
	}
	// The long window is for bursts that are granted anew where they must not be.
	for _, w := range []time.Duration{windows.Shortest(q.perSecond), 3 * time.Second} {
		got, want := windows.Largest(starts, w-lateness), windows.Allowed(q.perSecond, q.burst, w)
		if got > want {
			wrong = append(wrong, fmt.Errorf("queue %s: starts in a window of %v: got %d, want at most %d", q.name, w, got, want))
		}
	}
	return wrong
}

// started is a start of a job.
type started struct {
	id int64
	at time.Time
}

// judgeLane looks at the starts of one lane.
func judgeLane(q queue, lane string, starts []started) (wrong []error) {
	slices.SortFunc(starts, func(a, b started) int { return a.at.Compare(b.at) })
	var times []time.Time
	over := map[int64]bool{} // jobs that others have come after
	for i, s := range starts {
		times = append(times, s.at)
		if i > 0 && starts[i-1].id != s.id {
			over[starts[i-1].id] = true
		}
		if q.strict && over[s.id] {
			wrong = append(wrong, fmt.Errorf("queue %s: %s: job %d started again after others of its lane had, want them behind it", q.name, lane, s.id))
		}
	}
	if q.perLane > 0 {
		w := windows.Shortest(q.perLane)
		if got, want := windows.Largest(times, w-lateness), windows.Allowed(q.perLane, 1, w); got > want {
			wrong = append(wrong, fmt.Errorf("queue %s: starts of %s in a window of %v: got %d, want at most %d", q.name, lane, w, got, want))
		}
	}
	return wrong
}
