package main

import (
	"strings"
	"testing"
	"time"
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
	if got := percentile(delays[:1], 99); got != 1 {
		t.Errorf("percentile 99 of 1 ms alone: got %g, want 1", got)
	}
}

func TestWindowsOverAreCounted(t *testing.T) {
	at := func(ms ...int) (starts []time.Time) {
		for _, m := range ms {
			starts = append(starts, time.Unix(0, 0).Add(time.Duration(m)*time.Millisecond))
		}
		return starts
	}
	for _, c := range []struct {
		starts []time.Time
		want   int
	}{
		{at(0, 500, 1000, 1500), 0},
		{at(0, 500, 999, 1500), 1},       // [0, 1000) has three
		{at(0, 500, 999, 1499, 2100), 2}, // and so has [500, 1500)
	} {
		if got := windowsOver(2, c.starts); got != c.want {
			t.Errorf("windows over 2/s of %v: got %d, want %d", c.starts, got, c.want)
		}
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
