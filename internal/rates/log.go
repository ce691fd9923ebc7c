package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"
)

// event is a line of a log: a start, an answer or an arrival of one job.
type event struct {
	id     int64
	at     time.Time // by the boot clock: only differences mean something
	lane   string    // of a start
	status int       // of an answer or an arrival
}

// log is what was written down about one queue, each in the order of time.
type log struct {
	starts, answers, arrivals []event
}

// onBoot is a time of the boot clock as a time.Time.
func onBoot(d time.Duration) time.Time { return time.Unix(0, int64(d)) }

// readLog reads the notes of a queue's children, and what the receiver wrote down about it.
func readLog(folder, queue string, arrivals []byte) (log, error) {
	notes, err := os.ReadFile(notesFile(folder, queue))
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // none: nothing started
		return log{}, err
	}
	l, err := parseNotes(string(notes))
	if err != nil {
		return log{}, fmt.Errorf("queue %s: %w", queue, err)
	}
	l.arrivals, err = parseArrivals(string(arrivals), queue)
	l.sort()
	return l, err
}

func parseNotes(text string) (l log, err error) {
	for line := range strings.Lines(text) {
		var what, last string
		var e event
		var ns int64
		if _, err := fmt.Sscanf(line, "%s %d %d %s\n", &what, &e.id, &ns, &last); err != nil {
			return l, fmt.Errorf("read note %q: %w", line, err)
		}
		e.at = time.Unix(0, ns)
		if what == "start" {
			e.lane = last
			l.starts = append(l.starts, e)
		} else if _, err := fmt.Sscan(last, &e.status); err != nil {
			return l, fmt.Errorf("read note %q: %w", line, err)
		} else {
			l.answers = append(l.answers, e)
		}
	}
	return l, nil
}

func parseArrivals(text, queue string) (arrivals []event, err error) {
	for line := range strings.Lines(text) {
		rest, ours := strings.CutPrefix(line, queue+" ")
		if !ours || !strings.HasSuffix(rest, "\n") { // the receiver is still writing
			continue
		}
		var e event
		var ns int64
		if _, err := fmt.Sscanf(rest, "%d %d %d\n", &e.id, &ns, &e.status); err != nil {
			return nil, fmt.Errorf("read arrival %q: %w", line, err)
		}
		e.at = time.Unix(0, ns)
		arrivals = append(arrivals, e)
	}
	return arrivals, nil
}

func (l *log) sort() {
	for _, events := range [][]event{l.starts, l.answers, l.arrivals} {
		slices.SortStableFunc(events, func(a, b event) int { return a.at.Compare(b.at) })
	}
}

func times(events []event) (all []time.Time) {
	for _, e := range events {
		all = append(all, e.at)
	}
	return all
}

// way is how long, at the p-th percentile, calls took from the start of their job to the receiver.
func (l *log) way(p int) time.Duration {
	started := map[int64]time.Time{}
	var took []time.Duration
	next := 0
	for _, a := range l.arrivals {
		for ; next < len(l.starts) && !l.starts[next].at.After(a.at); next++ {
			started[l.starts[next].id] = l.starts[next].at
		}
		if at, ok := started[a.id]; ok {
			took = append(took, a.at.Sub(at))
		}
	}
	if len(took) == 0 {
		return 0
	}
	slices.Sort(took)
	return took[(len(took)*p+99)/100-1]
}
