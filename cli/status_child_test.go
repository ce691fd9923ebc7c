package cli

import (
	"bufio"
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"queuekeeper/jobs"
)

func TestStatusSaysWhoWorksAndWhatIsToBeKnown(t *testing.T) {
	const minute = time.Minute
	for _, c := range []struct {
		status  jobs.QueueStatus
		worker  string
		remarks string
	}{
		{jobs.QueueStatus{}, "nobody", ""},
		{jobs.QueueStatus{Holder: "web-1/4711"}, "web-1/4711", ""}, // of an earlier version
		{jobs.QueueStatus{Holder: "web-1/4711", PausedFor: minute}, "web-1/4711, paused", "q: paused for 1m0s more"},
		{jobs.QueueStatus{Holder: "web-1/4711", SeenAgo: minute, Child: jobs.Child{State: "ready", Restarts: 2}}, "web-1/4711", ""},
		{jobs.QueueStatus{Holder: "web-1/4711", PausedFor: minute, Child: jobs.Child{
			State: "ready", Restarts: 3, LastExit: "exit status 2: panic: boom\n\ngoroutine 1", ExitAgo: minute}},
			"web-1/4711, 3 restarts, paused", "q: paused for 1m0s more\nq: last exit 1m0s ago: exit status 2: panic: boom"},
		{jobs.QueueStatus{PausedFor: 192400 * time.Millisecond, PauseReason: "429: slow\n down"}, "nobody, paused",
			"q: paused for 3m12s more: 429: slow down"},
		{jobs.QueueStatus{PausedFor: 2400 * time.Hour, PauseHasNoEnd: true, PauseReason: "maintenance"}, "nobody, paused",
			"q: paused until resumed: maintenance"},
		{jobs.QueueStatus{PausedFor: 26 * time.Hour}, "nobody, paused", "q: paused for 1d2h0m0s more"},
		{jobs.QueueStatus{LanesPaused: 1, PausedLanes: []jobs.PausedLane{{Lane: " \n", For: -1}}}, "nobody", `q: lane " \n" paused until resumed`},
		{jobs.QueueStatus{LanesPaused: 3, PausedLanes: []jobs.PausedLane{
			{Lane: "a", Reason: "429"}, {Lane: "b", For: 720 * time.Hour, Reason: "no\n budget"}, {Lane: "c", For: -1, Reason: "x"}}},
			"nobody", "q: lane \"a\" paused for 1s more: 429\nq: lane \"b\" paused for 30d more: no budget\nq: lane \"c\" paused until resumed: x"},
		{jobs.QueueStatus{LanesPaused: 10_000, PausedLanes: slices.Repeat([]jobs.PausedLane{{Lane: "a", For: -1}}, 100)}, "nobody",
			strings.Repeat("q: lane \"a\" paused until resumed\n", 3) + "q: … and 9997 more lanes"},
		{jobs.QueueStatus{LanesPaused: 4, PausedLanes: slices.Repeat([]jobs.PausedLane{{Lane: "a", For: -1}}, 4)}, "nobody",
			strings.Repeat("q: lane \"a\" paused until resumed\n", 3) + "q: … and 1 more lane"},
		{jobs.QueueStatus{MaxJobsPerSecond: 10, Concurrency: 2, MeanDuration: 800 * time.Millisecond}, "nobody",
			"q: jobs take 0.8 s on average, so concurrency = 2 gives at most 2.5/s of the 10/s allowed; concurrency = 8 would reach it"},
		{jobs.QueueStatus{Child: jobs.Child{State: "restarting", Restarts: 1, LastExit: "exit status 3", ExitAgo: 1500 * time.Millisecond}},
			"nobody, restarting, 1 restart", "q: last exit 1s ago: exit status 3"},
		{jobs.QueueStatus{Child: jobs.Child{State: "parked", Detail: "no command", LastExit: "exit status 78"}},
			"nobody, parked", "q: parked: no command"},
		{jobs.QueueStatus{Holder: "web-1/4711", Child: jobs.Child{State: "waiting for the database", Detail: "refused:\n\t127.0.0.1"}},
			"web-1/4711, waiting for the database", "q: waiting for the database: refused: 127.0.0.1"},
		{jobs.QueueStatus{Holder: "web-1/4711", Child: jobs.Child{State: "quiet"}}, "web-1/4711, quiet", ""},
		{jobs.QueueStatus{Child: jobs.Child{State: "ended", Restarts: 3, LastExit: "exit status 3"}, FailedReload: "x"}, "nobody", ""},

		// Long ago: not told as a fact.
		{jobs.QueueStatus{SeenAgo: 3 * minute, Child: jobs.Child{State: "parked", Detail: "no command", LastExit: "exit status 78"}},
			"nobody", "q: 3m0s ago, when its supervisor was last heard of: parked: no command"},
		{jobs.QueueStatus{SeenAgo: time.Hour, FailedReload: "x", Child: jobs.Child{State: "ready", Restarts: 3, LastExit: "exit status 3"}},
			"nobody", ""},
	} {
		c.status.Queue = "q"
		if got := workerText(c.status); got != c.worker {
			t.Errorf("worker of %+v: got %q, want %q", c.status, got, c.worker)
		}
		if got := strings.Trim(strings.Join(remarks([]jobs.QueueStatus{c.status}), "\n"), "\n"); got != c.remarks {
			t.Errorf("remarks on %+v: got %q, want %q", c.status, got, c.remarks)
		}
	}
}

func TestFailedReloadIsToldOncePerSupervisor(t *testing.T) {
	fault := jobs.QueueStatus{ChildHost: "web-1", FailedReload: "queues.toml:3: lease: is 30\nqueues.toml:7: commnd: unknown"}
	other := jobs.QueueStatus{ChildHost: "web-2", FailedReload: "it changes all the time"}
	got := strings.Join(remarks([]jobs.QueueStatus{other, fault, {}, other, fault}), "\n")
	want := `
web-1: reload failed, the file before still holds: queues.toml:3: lease: is 30
  queues.toml:7: commnd: unknown
web-2: reload failed, the file before still holds: it changes all the time`
	if got != want {
		t.Errorf("remarks: got %s, want %s", got, want)
	}
}

// The table stays as wide as a terminal whatever there is to say.
func TestStatusTableFitsATerminal(t *testing.T) {
	var out bytes.Buffer
	p := &program{stdout: bufio.NewWriter(&out)}
	p.printStatus([]jobs.QueueStatus{{
		Queue: "slack-messages", Due: 123456, Later: 1234, Running: 10, Dead: 123, DoneLastHour: 12345, OldestDue: 26 * time.Hour,
		Holder: "web-1/1234567", MaxJobsPerSecond: 2.5,
		Child: jobs.Child{State: "ready", Restarts: 12, LastExit: "exit status 2: panic: " + strings.Repeat("x", 200)},
	}})
	p.stdout.Flush()
	for line := range strings.Lines(out.String()) {
		if strings.TrimSpace(line) == "" {
			break // the rest are remarks
		}
		if len(line) > 101 {
			t.Errorf("line: got %d characters, want 100 at most:\n%s", len(line)-1, line)
		}
	}
}
