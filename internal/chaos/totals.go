package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// totals are of all rounds.
type totals struct {
	jobs, repeats, remained int
	hits                    map[string]int
	worst                   map[string]recovery
}

// recovery is the slowest of its kind.
type recovery struct {
	took  time.Duration
	round int
}

func (t *totals) add(r *round) {
	if t.hits == nil {
		t.hits, t.worst = map[string]int{}, map[string]recovery{}
	}
	t.jobs += r.count()
	t.repeats += r.repeats
	t.remained += r.remained
	for name, n := range r.hits {
		t.hits[name] += n
	}
	for to, took := range r.watch.worst {
		if took > t.worst[to].took {
			t.worst[to] = recovery{took, r.number}
		}
	}
}

func (t *totals) print(out io.Writer, rounds int, seed uint64) error {
	var text strings.Builder
	fmt.Fprintf(&text, "%d rounds of seed %d, every one ended clean\n", rounds, seed)
	fmt.Fprintf(&text, "%6d  kills\n", t.kills())
	for _, name := range slices.Sorted(maps.Keys(t.hits)) {
		fmt.Fprintf(&text, "%6d  %s\n", t.hits[name], name)
	}
	fmt.Fprintf(&text, "%6d  jobs, none lost\n", t.jobs)
	fmt.Fprintf(&text, "%6d  repeats, each of a job that was in hand when something was ended\n", t.repeats)
	fmt.Fprintf(&text, "%6d  supervisors that ended with status 1: their child had been killed just before\n", t.remained)
	for _, to := range slices.Sorted(maps.Keys(t.worst)) {
		fmt.Fprintf(&text, "%6.2f  s at worst, in round %d, from %s until its queue was acquired anew and its jobs were back\n",
			t.worst[to].took.Seconds(), t.worst[to].round, to)
	}
	_, err := io.WriteString(out, text.String())
	return err
}

func (t *totals) kills() (n int) {
	for name, hits := range t.hits {
		if strings.HasPrefix(name, "KILL") || strings.HasPrefix(name, "SEGV") {
			n += hits
		}
	}
	return n
}
