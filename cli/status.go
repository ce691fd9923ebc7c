package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"queuekeeper/config"
	"queuekeeper/jobs"
)

func statusCommand(p *program) *cobra.Command {
	return p.printsData(&cobra.Command{
		Use:   "status",
		Short: "Show how each queue is",
		Long: "Show for each queue how many jobs are due, wait for later, run and are dead, how long the oldest has waited, and who\n" +
			"works on it; and below why children are not just ready, what is paused, and which limits cannot be reached as long as\n" +
			"jobs take what they took in the last hour. In --json times are in seconds, and paused_lanes names the first 100 of\n" +
			"lanes_paused by name, with paused_for null for one that waits to be resumed.",
		Example: "  queuekeeper status\n  queuekeeper status --json",
		Args:    takes(0, "no queue: it shows all of them"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.status(cmd.Context())
		},
	})
}

func (p *program) status(ctx context.Context) error {
	db, err := p.connect(ctx)
	if err != nil {
		return err
	}
	defer db.Close(ctx)
	queues, err := db.schema.Status(ctx, db)
	if err != nil {
		return err
	}
	queues = withWorkers(queues, db.workers)
	if p.json {
		return printJSON(p.stdout, statusJSON(queues))
	}
	p.printStatus(queues)
	return nil
}

func (p *program) printStatus(queues []jobs.QueueStatus) {
	if len(queues) == 0 {
		p.lines("", "no queue has a job, and none ever had a worker")
		return
	}
	rows := [][]string{{"QUEUE", "DUE", "LATER", "RUNNING", "DEAD", "DONE/H", "OLDEST", "LIMIT", "WORKER"}}
	for _, q := range queues {
		rows = append(rows, []string{q.Queue, count(q.Due), count(q.Later), count(q.Running), count(q.Dead),
			count(q.DoneLastHour), age(q.OldestDue), limitText(q), workerText(q)})
	}
	table(p.stdout, rows)
	for _, line := range remarks(queues) {
		fmt.Fprintln(p.stdout, shown(line))
	}
}

// withWorkers adds the queues of the file that have no job and never had a holder.
func withWorkers(queues []jobs.QueueStatus, workers []config.Worker) []jobs.QueueStatus {
	for _, w := range workers {
		if !slices.ContainsFunc(queues, func(q jobs.QueueStatus) bool { return q.Queue == w.Queue }) {
			q := jobs.QueueStatus{Queue: w.Queue, MaxJobsPerSecond: w.MaxJobsPerSecond, PerLane: w.PerLane, Concurrency: w.Concurrency}
			for _, quota := range w.Quotas {
				q.Quotas = append(q.Quotas, quota.String())
			}
			queues = append(queues, q)
		}
	}
	slices.SortFunc(queues, func(a, b jobs.QueueStatus) int { return strings.Compare(a.Queue, b.Queue) })
	return queues
}

func count(n int64) string { return strconv.FormatInt(n, 10) }

// age is a duration for people: no finer than a second.
func age(d time.Duration) string {
	if d < time.Second {
		return "-"
	}
	return span(d.Truncate(time.Second))
}

// limitText is all limits of a queue: "10/s, 5000/1h, 1/s a lane".
func limitText(q jobs.QueueStatus) string {
	var limits []string
	if q.MaxJobsPerSecond > 0 {
		limits = append(limits, perSecondText(q.MaxJobsPerSecond))
	}
	limits = append(limits, q.Quotas...)
	if q.PerLane > 0 {
		limits = append(limits, perSecondText(q.PerLane)+" a lane")
	}
	if len(limits) == 0 {
		return "none"
	}
	return strings.Join(limits, ", ")
}

func perSecondText(rate float64) string { return strconv.FormatFloat(rate, 'g', -1, 64) + "/s" }

// statusOf is one queue in --json.
type statusOf struct {
	Queue            string   `json:"queue"`
	Due              int64    `json:"due"`
	Later            int64    `json:"later"`
	Running          int64    `json:"running"`
	Dead             int64    `json:"dead"`
	DoneLastHour     int64    `json:"done_last_hour"`
	OldestDue        float64  `json:"oldest_due"`
	Holder           string   `json:"holder"`
	LeaseEnds        float64  `json:"lease_ends"`
	MaxJobsPerSecond float64  `json:"max_jobs_per_second"`
	PerLane          float64  `json:"max_jobs_per_second_per_lane"`
	Quotas           []string `json:"quotas"`
	Concurrency      int      `json:"concurrency"`   // 0: nobody has said
	MeanDuration     float64  `json:"mean_duration"` // of the jobs done in the last hour; 0: none
	// How many would have to run at the same time to reach max_jobs_per_second and the quotas; 0: concurrency does, or nothing is known.
	ConcurrencyNeeded int `json:"concurrency_needed"`

	PausedFor     float64      `json:"paused_for"` // at most 100 days
	PauseHasNoEnd bool         `json:"pause_has_no_end"`
	PauseReason   string       `json:"pause_reason"`
	LanesPaused   int64        `json:"lanes_paused"`
	PausedLanes   []pausedLane `json:"paused_lanes"` // the first 100 of them by name

	// What a supervisor said of the queue's child; see seen_ago for how long ago.
	ChildState   string   `json:"child_state"` // "": nothing was said
	ChildDetail  string   `json:"child_detail"`
	ChildHost    string   `json:"child_host"`
	ChildPID     int      `json:"child_pid"` // 0: no process
	Restarts     int      `json:"restarts"`
	LastExit     string   `json:"last_exit"`
	LastExitAgo  *float64 `json:"last_exit_ago"` // null: none died by itself
	FailedReload string   `json:"failed_reload"`
	SeenAgo      *float64 `json:"seen_ago"` // null: nothing was said
}

func statusJSON(queues []jobs.QueueStatus) []statusOf {
	all := []statusOf{}
	for _, q := range queues {
		c := q.Child
		all = append(all, statusOf{
			q.Queue, q.Due, q.Later, q.Running, q.Dead, q.DoneLastHour, q.OldestDue.Seconds(), q.Holder, q.LeaseEnds.Seconds(),
			q.MaxJobsPerSecond, q.PerLane, append([]string{}, q.Quotas...), q.Concurrency, q.MeanDuration.Seconds(),
			neededConcurrency(q.MeanDuration, allowed(q), q.Concurrency),
			q.PausedFor.Seconds(), q.PauseHasNoEnd, q.PauseReason, q.LanesPaused,
			pausedLanes(q.PausedLanes),
			c.State, c.Detail, q.ChildHost, c.PID, c.Restarts, c.LastExit, secondsIf(c.LastExit != "", c.ExitAgo), q.FailedReload,
			secondsIf(c.State != "", q.SeenAgo),
		})
	}
	return all
}

// pausedLane is a lane that starts nothing in --json.
type pausedLane struct {
	Lane      string   `json:"lane"`
	PausedFor *float64 `json:"paused_for"` // at most 100 days; null: until it is resumed
	Reason    string   `json:"reason"`
}

func pausedLanes(lanes []jobs.PausedLane) []pausedLane {
	all := []pausedLane{}
	for _, l := range lanes {
		all = append(all, pausedLane{l.Lane, secondsIf(l.For >= 0, l.For), l.Reason})
	}
	return all
}

func secondsIf(known bool, d time.Duration) *float64 {
	if !known {
		return nil
	}
	return new(d.Seconds())
}
