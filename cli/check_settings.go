package cli

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"queuekeeper/config"
)

// The settings as check prints them: durations as in the file.
type (
	checkedFile struct {
		File            string          `json:"file"`
		Database        *databaseFacts  `json:"database"` // null: out of reach
		Lease           string          `json:"lease"`
		ShutdownTimeout string          `json:"shutdown_timeout"`
		LogFormat       string          `json:"log_format"`
		Workers         []checkedWorker `json:"workers"`
	}
	checkedWorker struct {
		Queue            string                `json:"queue"`
		Jobs             []string              `json:"jobs"`    // empty: any
		Command          string                `json:"command"` // "": a Go handler
		MaxJobsPerSecond float64               `json:"max_jobs_per_second"`
		Burst            int                   `json:"burst"`
		Headroom         float64               `json:"headroom"`
		Quotas           []string              `json:"quotas"`
		PerLane          float64               `json:"max_jobs_per_second_per_lane"` // 0: no limit
		Lanes            map[string]int        `json:"lanes"`                        // weights; the rest have 1
		PauseScope       string                `json:"pause_scope"`
		Order            string                `json:"order"`
		Concurrency      int                   `json:"concurrency"`
		PollInterval     string                `json:"poll_interval"`
		Timeout          string                `json:"timeout"`
		KillAfter        string                `json:"kill_after"`
		MaxAttempts      int                   `json:"max_attempts"`
		MemoryLimit      int64                 `json:"memory_limit"` // bytes; 0: no limit
		Env              []string              `json:"env"`          // names; their values are nobody's business
		User             string                `json:"user"`         // "": as the supervisor
		Nice             int                   `json:"nice"`
		Job              map[string]checkedJob `json:"job,omitempty"`
	}
	checkedJob struct {
		Timeout     string `json:"timeout,omitempty"`
		MaxAttempts int    `json:"max_attempts,omitempty"`
		Command     string `json:"command,omitempty"`
	}
)

func (p *program) printSettings(file config.File, facts *databaseFacts) error {
	if p.json {
		return printJSON(p.stdout, checked(file, facts))
	}
	rows := [][]string{{"file:", file.Path}}
	if facts != nil {
		rows = append(rows,
			[]string{"database:", fmt.Sprintf("%s on %s:%d as %s, TLS %s", facts.Name, facts.Host, facts.Port, facts.User, onOff(facts.TLS))},
			[]string{"schema:", fmt.Sprintf("%s, version %d, notifications %s", facts.Schema, facts.Version, onOff(facts.Notify))})
	}
	table(p.stdout, append(rows,
		[]string{"lease:", file.Lease.String()},
		[]string{"shutdown timeout:", file.ShutdownTimeout.String()},
		[]string{"log format:", file.LogFormat}))
	fmt.Fprintln(p.stdout)
	rows = [][]string{{"QUEUE", "RATE", "BURST", "HEADROOM", "QUOTAS", "PER LANE", "LANES", "PAUSE SCOPE", "ORDER", "CONCURRENCY", "POLL", "TIMEOUT", "KILL AFTER", "MAX ATTEMPTS",
		"MEMORY", "NICE", "USER", "ENV", "JOBS", "COMMAND"}}
	for _, w := range file.Workers {
		rows = append(rows, workerRow(w))
	}
	table(p.stdout, withoutEmptyColumns(rows))
	return nil
}

// withoutEmptyColumns leaves out the columns in which no row but the first, their titles, has anything.
func withoutEmptyColumns(rows [][]string) [][]string {
	shown := make([][]string, len(rows))
	for column := range rows[0] {
		if slices.ContainsFunc(rows[1:], func(row []string) bool { return row[column] != "" }) {
			for i, row := range rows {
				shown[i] = append(shown[i], row[column])
			}
		}
	}
	return shown
}

func workerRow(w config.Worker) []string {
	rate, accepts, command := "no limit", "any", "Go handlers"
	if w.MaxJobsPerSecond > 0 {
		rate = number(w.MaxJobsPerSecond) + "/s"
	}
	perLane := ""
	if w.PerLane > 0 {
		perLane = number(w.PerLane) + "/s"
	}
	if len(w.Jobs) > 0 {
		accepts = strings.Join(w.Jobs, ", ")
	}
	if len(w.Command) > 0 {
		command = shownCommand(w.Command)
	}
	nice := ""
	if w.Nice > 0 {
		nice = strconv.Itoa(w.Nice)
	}
	return []string{w.Queue, rate, strconv.Itoa(w.Burst), number(100*w.Headroom) + "%",
		strings.Join(quotaTexts(w.Quotas), ", "), perLane, shownLanes(w.Lanes), unless("queue", w.PauseScope), unless("due", w.Order),
		strconv.Itoa(w.Concurrency), w.PollInterval.String(), w.Timeout.String(), w.KillAfter.String(),
		strconv.Itoa(w.MaxAttempts), shownSize(w.MemoryLimit), nice, w.User, strings.Join(w.Env, ", "), accepts, command}
}

func quotaTexts(quotas []config.Quota) []string {
	texts := []string{}
	for _, q := range quotas {
		texts = append(texts, q.String())
	}
	return texts
}

// shownLanes is the heaviest lanes and how many more there are.
func shownLanes(weights map[string]int) string {
	const most = 3
	lanes := slices.SortedFunc(maps.Keys(weights), func(a, b string) int {
		return cmp.Or(cmp.Compare(weights[b], weights[a]), cmp.Compare(a, b))
	})
	var texts []string
	for _, lane := range lanes[:min(most, len(lanes))] {
		texts = append(texts, fmt.Sprintf("%s %d", lane, weights[lane]))
	}
	if more := len(lanes) - most; more > 0 {
		texts = append(texts, fmt.Sprintf("… (%d more)", more))
	}
	return strings.Join(texts, ", ")
}

// unless is value, or "" where it is what holds anyway.
func unless(usual, value string) string {
	if value == usual {
		return ""
	}
	return value
}

// shownSize is a size as a file would have it; "" for 0.
func shownSize(bytes int64) string {
	switch {
	case bytes == 0:
		return ""
	case bytes%(1<<30) == 0:
		return fmt.Sprintf("%dGB", bytes>>30)
	case bytes%(1<<20) == 0:
		return fmt.Sprintf("%dMB", bytes>>20)
	}
	return fmt.Sprintf("%dKB", bytes>>10)
}

// shownCommand leaves the arguments out: a variable of the environment in them may be a secret.
func shownCommand(command []string) string {
	switch n := len(command) - 1; n {
	case -1:
		return ""
	case 0:
		return command[0]
	default:
		return fmt.Sprintf("%s … (%d more)", command[0], n)
	}
}

func checked(file config.File, facts *databaseFacts) checkedFile {
	c := checkedFile{
		File: file.Path, Database: facts, Lease: file.Lease.String(),
		ShutdownTimeout: file.ShutdownTimeout.String(), LogFormat: file.LogFormat,
	}
	for _, w := range file.Workers {
		byName := map[string]checkedJob{}
		lanes := w.Lanes
		if lanes == nil {
			lanes = map[string]int{} // {}, not null
		}
		for name, j := range w.Job {
			byName[name] = checkedJob{Timeout: orUnset(j.Timeout), MaxAttempts: j.MaxAttempts, Command: shownCommand(j.Command)}
		}
		c.Workers = append(c.Workers, checkedWorker{
			Queue: w.Queue, Jobs: w.Jobs, Command: shownCommand(w.Command), MaxJobsPerSecond: w.MaxJobsPerSecond, Burst: w.Burst,
			Headroom: w.Headroom, Quotas: quotaTexts(w.Quotas), PerLane: w.PerLane, Lanes: lanes, PauseScope: w.PauseScope, Order: w.Order,
			Concurrency: w.Concurrency, PollInterval: w.PollInterval.String(),
			Timeout: w.Timeout.String(), KillAfter: w.KillAfter.String(), MaxAttempts: w.MaxAttempts,
			MemoryLimit: w.MemoryLimit, Env: w.Env, User: w.User, Nice: w.Nice, Job: byName,
		})
	}
	return c
}

// orUnset is the duration, or "" where the file says nothing.
func orUnset(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return d.String()
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}
