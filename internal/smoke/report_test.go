package main

import (
	"io"
	"strings"
	"testing"
	"time"
)

// example is a queue of three jobs that went well, one second from start to start.
func example() (queue, []row, map[int64][]time.Time) {
	q := queue{name: "github", perSecond: 1, burst: 1, concurrency: 1, jobs: 3}
	var rows []row
	ran := map[int64][]time.Time{}
	for id := range int64(3) {
		start := time.Unix(100+id, 0)
		rows = append(rows, row{ID: id, Queue: q.name, State: "done", Attempts: 1, StartedAt: &start})
		ran[id] = []time.Time{start.Add(3 * time.Millisecond)}
	}
	return q, rows, ran
}

func TestReportFindsWhatWentWrong(t *testing.T) {
	lastError := "exit status 3"
	for name, c := range map[string]struct {
		spoil func(rows []row, ran map[int64][]time.Time) []row
		want  string // "" for no fault
	}{
		"nothing": {func(rows []row, _ map[int64][]time.Time) []row { return rows }, ""},
		"a row is missing": {func(rows []row, ran map[int64][]time.Time) []row {
			delete(ran, 2)
			return rows[:2]
		}, "2 jobs are in the table, want 3"},
		"a job never ran": {func(rows []row, ran map[int64][]time.Time) []row {
			rows[1].State, rows[1].Attempts = "pending", 0
			delete(ran, 1)
			return rows
		}, "job 1 was lost: it is pending and never ran"},
		"a job ran twice": {func(rows []row, ran map[int64][]time.Time) []row {
			ran[1] = append(ran[1], ran[1][0].Add(time.Second))
			return rows
		}, "job 1 ran 2 times, want once"},
		"a job is dead": {func(rows []row, _ map[int64][]time.Time) []row {
			rows[1].State, rows[1].LastError = "dead", &lastError
			return rows
		}, "job 1 ran and is dead after 1 attempts, want done after one: exit status 3"},
		"a rolled back job ran": {func(rows []row, ran map[int64][]time.Time) []row {
			ran[7] = ran[1]
			return rows
		}, "job 7 ran, but its transaction was rolled back"},
		"a window is over": {func(rows []row, ran map[int64][]time.Time) []row {
			early := rows[2].StartedAt.Add(-time.Millisecond)
			rows[2].StartedAt = &early
			return rows
		}, "2 starts in a window of 1s, want at most 1"},
		"row and handler disagree": {func(rows []row, ran map[int64][]time.Time) []row {
			ran[2] = []time.Time{ran[2][0].Add(time.Minute)}
			return rows
		}, "start of job 2: its row and its handler are 1m0.003s apart, want at most 2s"},
	} {
		q, rows, ran := example()
		rows = c.spoil(rows, ran)
		err := judge(io.Discard, []queue{q}, rows, ran)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: got %v, want no fault", name, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

func TestReportHasALinePerQueue(t *testing.T) {
	q, rows, ran := example()
	var out strings.Builder
	if err := judge(&out, []queue{q}, rows, ran); err != nil {
		t.Fatalf("judge: got %v, want no fault", err)
	}
	want := "   queue  jobs  done  limit/s  rate/s  window  most  allowed\n" +
		"  github     3     3        1    1.00      1s     1        1\n"
	if got := out.String(); got != want {
		t.Errorf("report:\ngot:\n%swant:\n%s", got, want)
	}
}
