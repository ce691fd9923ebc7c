package main

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// refusedLog is that of a queue at its limit, in which the 50th call and the 99th were refused. The pauses are the
// receiver's 3 s, from one call to the next turn.
func refusedLog() log {
	starts := every(21, 0, 50)
	starts = append(starts, every(21, starts[49]+1+3_000+21, 49)...)
	starts = append(starts, every(21, starts[98]+1+3_000+21, 30)...)
	l := called(starts...)
	for _, i := range []int{49, 98} {
		l.arrivals[i].status, l.answers[i].status = http.StatusTooManyRequests, http.StatusTooManyRequests
	}
	for _, e := range []*event{&l.starts[99], &l.arrivals[99], &l.answers[99]} {
		e.id = 49 // its second attempt
	}
	return l
}

func refusedRows() (rows []counts) {
	for _, s := range refusedLog().starts {
		rows = append(rows, counts{ID: s.id, State: "done", Attempts: 1})
	}
	rows = slices.DeleteFunc(rows, func(r counts) bool { return r.ID == 49 })
	rows = append(rows, counts{ID: 49, State: "done", Attempts: 2, Excused: 1, Throttled: 1})
	rows[slices.IndexFunc(rows, func(r counts) bool { return r.ID == 98 })] = counts{98, "pending", 1, 1, 1}
	return append(rows, counts{ID: 1000, State: "pending"})
}

func TestJudgeOfRefusalsFindsWhatIsWrong(t *testing.T) {
	for name, c := range map[string]struct {
		change func(l *log, rows []counts)
		want   string // "": nothing is wrong
	}{
		"sound":             {func(*log, []counts) {}, ""},
		"a call in a pause": {func(l *log, _ []counts) { l.move(60, -1_500) }, "calls in a pause: got 1"},
		"a call that was on its way": {func(l *log, _ []counts) {
			l.starts = slices.Insert(l.starts, 50, event{id: 500, at: l.starts[49].at.Add(time.Millisecond)})
			l.arrivals = slices.Insert(l.arrivals, 50, event{id: 500, at: l.arrivals[49].at.Add(4 * time.Millisecond), status: 200})
			for i := range 49 { // its turn was the one before the refusal
				l.move(i, -21)
			}
		}, ""},
		"a burst after a pause":     {func(l *log, _ []counts) { l.move(51, -20) }, "before their turn after a pause: got 1"},
		"a saved turn at its end":   {func(l *log, _ []counts) { l.move(50, -20) }, "before their turn after a pause: got 1"},
		"over the limit":            {func(l *log, _ []counts) { l.starts = append(l.starts, called(every(10, 105, 5)...).starts...) }, "windows with more"},
		"a refusal that counts":     {func(_ *log, rows []counts) { rows[len(rows)-2].Excused-- }, "does not say what happened: got 1"},
		"a refusal that is unknown": {func(_ *log, rows []counts) { rows[len(rows)-2].Throttled-- }, "does not say what happened: got 1"},
		"no refusals": {func(l *log, rows []counts) {
			*l = called(every(21, 0, 40)...)
			for i := range rows {
				rows[i].Throttled, rows[i].Excused, rows[i].Attempts = 0, 0, 0
				rows[i].State = "pending"
			}
		}, "refused calls: got 0"},
	} {
		l, rows := refusedLog(), refusedRows()
		c.change(&l, rows)
		l.sort()
		got := strings.Join(judgeRefusal(refusal{concurrency: 8}, l, rows).wrong(), "; ")
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// move has the i-th job start, call and be answered so many milliseconds later.
func (l *log) move(i, ms int) {
	for _, e := range []*event{&l.starts[i], &l.arrivals[i], &l.answers[i]} {
		e.at = e.at.Add(time.Duration(ms) * time.Millisecond)
	}
}
