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

	userForm = regexp.MustCompile(`^[^\x00-\x20\x7f:/]*$`)

	jobName  = words{what: "a job name of 1 to 255 bytes without control characters", form: noControls, min: 1, max: 255}
	program  = words{what: "a text that is not empty", form: noNUL, min: 1, max: maxSize}
	laneName = words{what: "a lane name of 1 to 255 bytes without control characters", form: noControls, min: 1, max: 255}
	envName  = words{
		what: "the name of an environment variable: letters, digits and _, not a digit first, and no ${…} around it",
		form: regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`), min: 1, max: 255,
	}
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
		name: "jobs", kind: list{what: "a list of job names that is not empty (leave it out to accept any)", item: jobName}, without: "any name",
		meaning: "the job names it accepts",
		worker:  func(w *Worker) any { return &w.Jobs },
	},
	{
		name: "command", kind: list{what: `a list of texts that is not empty, like ["ruby", "github.rb"]`, item: program}, without: "a Go handler",
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
		name: "quotas", without: "none",
		kind: list{
			what: `a list of at most 4 texts like "5000/1h": 1 to 1000000000 starts, and a duration from "1s" to "31d", each of its own`,
			item: quota{1_000_000_000, duration{time.Second, 31 * day}}, most: 4, none: []Quota(nil),
			own: windowOf, ownName: "window",
		},
		meaning: "how many jobs start at most in any window of that length, wherever it begins; of several each holds. " +
			"Starts are counted, retries too. headroom does not apply to them. [] takes back those of [defaults]",
		worker: func(w *Worker) any { return &w.Quotas },
	},
	{
		name: "max_jobs_per_second_per_lane", kind: number{0.001, 10000}, without: "no limit",
		meaning: "how many jobs of one lane start per second at most; the other lanes go on meanwhile. Each lane then has one job per " +
			"turn, whatever its weight",
		worker: func(w *Worker) any { return &w.PerLane },
	},
	{
		name: lanesKey, own: true, kind: weights{laneName, whole{1, 1000}, 1000}, without: "every lane has weight 1",
		meaning: "the weights of lanes, as [worker.lanes]. Of two lanes that both have due jobs, one of weight 5 starts five for each " +
			"that one of weight 1 starts. A lane that is not there has weight 1. A weight is a share of turns, not a priority: with 1000 " +
			"lanes busy each waits for the turns of the others. It says nothing where order is strict or max_jobs_per_second_per_lane is " +
			"set: each lane then has one job per turn. A lane called like a key of [[worker]] cannot be there",
		worker: func(w *Worker) any { return &w.Lanes },
	},
	{
		name: "pause_scope", kind: choice{"queue", "lane"}, def: "queue",
		meaning: "what waits when an API says that it was called too often, and does not say whom it means: all of the queue, or the " +
			"lane of that job",
		worker: func(w *Worker) any { return &w.PauseScope },
	},
	{
		name: "order", kind: choice{"due", "strict"}, def: "due",
		meaning: "due: a failed job waits for its retry while later ones pass it. strict: within a lane nothing overtakes it, the lane " +
			"waits for the retry or until that job is dead, and does one job at a time, so one per turn, whatever its weight",
		worker: func(w *Worker) any { return &w.Order },
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
	{
		name: "memory_limit", kind: size{16 * megabyte, 1024 * gigabyte}, without: "no limit",
		meaning: "how much memory the process of a command may allocate, each for itself, or Go handlers all together, " +
			"over what their process starts with. Beyond it allocations fail, which ends most programs. Linux only",
		worker: func(w *Worker) any { return &w.MemoryLimit },
	},
	{
		name: "env", own: true, kind: list{what: "a list of names of environment variables that is not empty", item: envName}, without: "none",
		meaning: "environment variables that only workers that list them see; what no worker lists, all see. Each must be set",
		worker:  func(w *Worker) any { return &w.Env },
	},
	{
		name: "user", own: true, kind: words{what: "the name or number of a user of the system", form: userForm, min: 1, max: 255},
		without: "the user of the supervisor",
		meaning: "whom its process and its commands run as, with the groups and HOME of that user. Only root can start them so",
		worker:  func(w *Worker) any { return &w.User },
	},
	{
		name: "nice", kind: whole{0, 19}, def: int64(0),
		meaning: "how much it stands back from others for the CPU: its nice value, if the supervisor has not a higher one",
		worker:  func(w *Worker) any { return &w.Nice },
	},
}

// Tables of the file that are not keys with a value.
const (
	defaultsTable = "defaults"
	workerTable   = "worker"
	jobTable      = "job"
	lanesKey      = "lanes" // a key whose value is a table
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
