package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"queuekeeper/config"
)

func TestTableTellsMediansAndTheMedianOfRatios(t *testing.T) {
	var table table
	for _, round := range [][2]float64{{500, 1000}, {900, 2000}, {700, 1000}} {
		table.add([]figure{{what: serialWhat, unit: "/s", measured: round[0], limit: round[1], aim: ratioAtLeast(0.55)}})
	}
	want := "  measured   limit  ratio            aim  reached\n" +
		"     700/s  1000/s  0.500  ratio >= 0.55       no  " + serialWhat + "\n" +
		"serial ratio 0.50\n"
	if got := printed(t, table); got != want {
		t.Errorf("table: got\n%q\nwant\n%q", got, want)
	}
}

func TestWorstRoundCountsWhereItIsAskedFor(t *testing.T) {
	var table table
	for _, over := range []float64{0, 2, 0} {
		table.add([]figure{{what: "windows over", measured: over, aim: zero, worst: true}})
	}
	if got, want := strings.Join(strings.Fields(printed(t, table)), " "), "reached 2 0 no windows over"; !strings.Contains(got, want) {
		t.Errorf("table: got %q, want it to contain %q", got, want)
	}
}

func printed(t *testing.T, table table) string {
	t.Helper()
	var out strings.Builder
	if err := table.print(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestPercentileIsAMeasuredDelay(t *testing.T) {
	var delays []time.Duration
	for ms := range 200 {
		delays = append(delays, time.Duration(ms+1)*time.Millisecond)
	}
	for p, want := range map[int]float64{50: 100, 99: 198} {
		if got := percentile(delays, p); got != want {
			t.Errorf("percentile %d of 1 to 200 ms: got %g, want %g", p, got, want)
		}
	}
	if got := percentile(delays, 100); got != 200 {
		t.Errorf("percentile 100 of 1 to 200 ms: got %g, want 200, the worst", got)
	}
	if got := percentile(delays[:1], 99); got != 1 {
		t.Errorf("percentile 99 of 1 ms alone: got %g, want 1", got)
	}
}

func TestWhatProgramsSayIsRead(t *testing.T) {
	tps, err := parseTPS([]byte("latency average = 0.536 ms\ntps = 1864.25 (without initial connection time)\n"))
	if err != nil || tps != 1864.25 {
		t.Errorf("tps: got %g, %v, want 1864.25", tps, err)
	}
	if _, err := parseTPS([]byte("connection refused")); err == nil {
		t.Error("tps of other words: got no error, want one")
	}
	rollup := []byte("Rss:  9000 kB\nPrivate_Clean:   4 kB\nPrivate_Dirty:  2044 kB\nPrivate_Hugetlb: 0 kB\n")
	if got, want := private(rollup), 2048<<10; got != want {
		t.Errorf("private memory: got %d, want %d", got, want)
	}
	started, err := parseStamps([]byte("7 1000\n8 2000\n"))
	if err != nil || len(started) != 2 || started[8] != 2000 {
		t.Errorf("stamps: got %v, %v, want 7 at 1µs and 8 at 2µs", started, err)
	}
}

func TestKillsTellTheWorstOfAllRounds(t *testing.T) {
	var table table
	for _, worst := range []time.Duration{60, 1100, 70} {
		delays := []time.Duration{worst * time.Millisecond, 50 * time.Millisecond, 40 * time.Millisecond}
		table.add(killFigures(5*time.Millisecond, delays))
	}
	got := strings.Join(strings.Fields(printed(t, table)), " ")
	for _, want := range []string{"50 ms 5 ms 10.000 < 1000 yes", "1100 ms < 1000 no"} {
		if !strings.Contains(got, want) {
			t.Errorf("table: got %q, want it to contain %q", got, want)
		}
	}
}

func TestStartIsBesideItsLimitAndItsAim(t *testing.T) {
	var table table
	table.add(startFigures(time.Second, 5*time.Second, 1500*time.Millisecond))
	got := strings.Join(strings.Fields(printed(t, table)), " ")
	for _, want := range []string{"5 s 1 s 5.000 < 5 no 200 queues", "1.50 s 200 idle queues"} {
		if !strings.Contains(got, want) {
			t.Errorf("table: got %q, want it to contain %q", got, want)
		}
	}
}

func TestWorkersAreWrittenAsTheFileWantsThem(t *testing.T) {
	file := filepath.Join(t.TempDir(), "queues.toml")
	text := worker{queue: "kill-1", concurrency: 1, command: []string{"sleep", "600"}}.toml() +
		worker{queue: "pace-10", concurrency: 10, perSecond: 10}.toml()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	loaded, err := config.Load(file, func(string) (string, bool) { return "postgres://host/db", true })
	if err != nil {
		t.Fatal(err)
	}
	if got, want := loaded.Workers[0].Command, []string{"sleep", "600"}; !slices.Equal(got, want) {
		t.Errorf("command: got %q, want %q", got, want)
	}
	if got := loaded.Workers[1]; got.Command != nil || got.Concurrency != 10 || got.MaxJobsPerSecond != 10 {
		t.Errorf("second worker: got %+v, want no command, concurrency 10 and 10 jobs per second", got)
	}
}
