package config

import (
	"regexp"
	"time"
)

// key is a key of the file: what it must be, what it is when left out, and the field it fills. The tables
// below are the only place that knows the keys; checking, defaults and docs/queues.toml.md come from them.
type key struct {
	name    string
	kind    kind
	def     any    // as TOML has it; nil: none
	without string // what leaving it out means where there is no def
	meaning string
	secret  bool              // its value is not shown in a fault
	own     bool              // of one worker: not for [defaults]
	file    func(*File) any   // the field at the top of the file; nil: not a key there
	worker  func(*Worker) any // the field of a [[worker]] and of [defaults]
	job     func(*Job) any    // the field of a [worker.job.NAME]
}

var (
	noControls = regexp.MustCompile(`^[^\x00-\x1f\x7f]*$`)
	noNUL      = regexp.MustCompile(`^[^\x00]*$`)
	queueForm  = regexp.MustCompile(`^[a-z0-9][a-z0-9_.-]{0,57}$`)

	jobName = words{what: "a job name of 1 to 255 bytes without control characters", form: noControls, min: 1, max: 255}
	program = words{what: "a text that is not empty", form: noNUL, min: 1, max: maxSize}
)

var topKeys = []key{
	{
		name: "database_url", kind: databaseURL{}, def: "${DATABASE_URL}", secret: true,
		meaning: "where Postgres is: a URL, or key=value pairs. In a URL the password is percent-encoded",
		file:    func(f *File) any { return &f.DatabaseURL },
	},
	{
		name: "schema", kind: words{what: "a schema name of at most 63 bytes without control characters", form: noControls, max: 63}, def: "",
		meaning: `the schema of the tables; "" means the first one of the connection's search_path`,
		file:    func(f *File) any { return &f.Schema },
	},
	{
		name: "lease", kind: duration{time.Second, time.Hour}, def: "30s",
		meaning: "how long the right to run a queue lasts without being renewed: after the loss of a whole host its jobs wait this long",
		file:    func(f *File) any { return &f.Lease },
	},
	{
		name: "shutdown_timeout", kind: duration{time.Second, time.Hour}, def: "25s",
		meaning: "how long a stop may take; running jobs may finish for four fifths of it",
		file:    func(f *File) any { return &f.ShutdownTimeout },
	},
	{
		name: "log_format", kind: choice{"text", "json"}, def: "text",
		meaning: "how log lines look",
		file:    func(f *File) any { return &f.LogFormat },
	},
}

var workerKeys = []key{
	{
		name: "queue", own: true, without: "must be there",
		kind:    words{what: "a queue name: 1 to 58 of a-z 0-9 _ . - that start with a letter or digit", form: queueForm, min: 1, max: 58},
		meaning: "the queue it serves; no two workers have the same",
		worker:  func(w *Worker) any { return &w.Queue },
	},
	{
		name: "jobs", kind: list{"a list of job names that is not empty (leave it out to accept any)", jobName}, without: "any name",
		meaning: "the job names it accepts",
		worker:  func(w *Worker) any { return &w.Jobs },
	},
	{
		name: "command", kind: list{`a list of texts that is not empty, like ["ruby", "github.rb"]`, program}, without: "a Go handler",
		meaning: "program and arguments, started for each job without a shell, in the folder of the file. " +
			"A program with a slash in it is a path, relative to that folder; without, it is searched in PATH",
		worker: func(w *Worker) any { return &w.Command },
		job:    func(j *Job) any { return &j.Command },
	},
	{
		name: "max_jobs_per_second", kind: number{0.001, 10000}, without: "no limit",
		meaning: "how many jobs start per second at most; 0.2 is one every 5 seconds",
		worker:  func(w *Worker) any { return &w.MaxJobsPerSecond },
	},
	{
		name: "burst", kind: whole{1, 1000}, def: int64(1),
		meaning: "how many jobs may start at once after an idle time, under max_jobs_per_second",
		worker:  func(w *Worker) any { return &w.Burst },
	},
	{
		name: "headroom", kind: percent{0, 50}, def: "1%",
		meaning: "how far below max_jobs_per_second to stay, because calls do not all take the same time to arrive",
		worker:  func(w *Worker) any { return &w.Headroom },
	},
	{
		name: "concurrency", kind: whole{1, 1000}, def: int64(1),
		meaning: "how many jobs run at the same time",
		worker:  func(w *Worker) any { return &w.Concurrency },
	},
	{
		name: "poll_interval", kind: duration{100 * time.Millisecond, 31 * day}, def: "10s",
		meaning: "how often to look for jobs that no notification told of",
		worker:  func(w *Worker) any { return &w.PollInterval },
	},
	{
		name: "timeout", kind: duration{100 * time.Millisecond, 31 * day}, def: "1m",
		meaning: "how long a job may run; then it is asked to stop",
		worker:  func(w *Worker) any { return &w.Timeout },
		job:     func(j *Job) any { return &j.Timeout },
	},
	{
		name: "kill_after", kind: duration{100 * time.Millisecond, 31 * day}, def: "5s",
		meaning: "how long a job that was asked to stop may take; then it is killed",
		worker:  func(w *Worker) any { return &w.KillAfter },
	},
	{
		name: "max_attempts", kind: whole{1, 1000000}, def: int64(20),
		meaning: "how many attempts a job has before it is dead; max_attempts of the job's row wins",
		worker:  func(w *Worker) any { return &w.MaxAttempts },
		job:     func(j *Job) any { return &j.MaxAttempts },
	},
}

// Tables of the file that are not keys with a value.
const (
	defaultsTable = "defaults"
	workerTable   = "worker"
	jobTable      = "job"
)

func defaultsKeys() []key { return only(func(k key) bool { return !k.own }) }
func jobKeys() []key      { return only(func(k key) bool { return k.job != nil }) }

func only(wanted func(key) bool) []key {
	var keys []key
	for _, k := range workerKeys {
		if wanted(k) {
			keys = append(keys, k)
		}
	}
	return keys
}
