package main

import (
	"fmt"
	"net/http"
	"time"
)

// refusalVerdict is what the log and the rows of a queue that was refused say.
type refusalVerdict struct {
	refusal
	kills, calls, refused int
	inPause               int // calls
	early                 int // starts before their turn after a pause, which ends with an empty bucket
	most, over            int
	miscounted            int // jobs
}

// known is how long a refusal may take from the handler to whoever starts the jobs.
const known = 5 * time.Millisecond

func judgeRefusal(r refusal, l log, rows []counts) refusalVerdict {
	refused := refusedOf(l.arrivals)
	starts := times(l.starts)
	v := refusalVerdict{
		refusal: r, calls: len(l.arrivals), refused: len(refused),
		most: refusalLimit.most(starts), over: refusalLimit.over(starts), miscounted: miscounted(l, rows),
	}
	for _, e := range refused {
		end := e.at.Add(refusedFor)
		v.inPause += inPause(l, e, end)
		v.early += refusalLimit.early(until(starts, end.Add(time.Second)), end)
	}
	return v
}

func refusedOf(arrivals []event) (refused []event) {
	for _, a := range arrivals {
		if a.status == http.StatusTooManyRequests {
			refused = append(refused, a)
		}
	}
	return refused
}

func until(times []time.Time, end time.Time) []time.Time {
	before, _ := split(times, end)
	return before
}

// inPause counts the calls that came between a refusal and the end of its pause. Those of jobs that had started
// before it was known are not blamed.
func inPause(l log, refused event, end time.Time) (n int) {
	heard := end // a handler that was killed before it had the answer has told nobody
	for _, a := range l.answers {
		if a.id == refused.id && a.at.After(refused.at) {
			heard = a.at.Add(known)
			break
		}
	}
	for _, a := range l.arrivals {
		if a.at.After(refused.at) && a.at.Before(end) && !l.startOf(a).Before(heard) {
			n++
		}
	}
	return n
}

// startOf is the start that a call was made by.
func (l *log) startOf(arrival event) (at time.Time) {
	for _, s := range l.starts {
		if s.at.After(arrival.at) {
			break
		}
		if s.id == arrival.id {
			at = s.at
		}
	}
	return at
}

// miscounted counts jobs of which the row does not say what happened: each refusal that the handler heard of is an
// attempt that does not count, and of a job that is done one counts. Nothing ran when a child was killed.
func miscounted(l log, rows []counts) (wrong int) {
	refused := map[int64]int{}
	for _, a := range l.answers {
		if a.status == http.StatusTooManyRequests {
			refused[a.id]++
		}
	}
	for _, r := range rows {
		counted := 0
		if r.State == "done" {
			counted = 1
		}
		if r.Throttled != refused[r.ID] || r.Attempts-r.Excused != counted {
			wrong++
		}
	}
	return wrong
}

func (v refusalVerdict) row() []string {
	name := "nothing else"
	if v.refusal.kills {
		name = fmt.Sprintf("child killed in the pauses, %d times", v.kills)
	}
	row := []string{name}
	for _, n := range []int{
		v.concurrency, v.calls, v.refused, v.inPause, v.early, v.most, refusalLimit.allowed(refusalLimit.shortest()), v.over,
		v.miscounted,
	} {
		row = append(row, fmt.Sprint(n))
	}
	return row
}

func (v refusalVerdict) wrong() (wrong []string) {
	for _, c := range []struct {
		what string
		got  int
	}{
		{"calls in a pause", v.inPause},
		{"starts before their turn after a pause", v.early},
		{"windows with more starts than allowed", v.over},
		{"jobs whose row does not say what happened", v.miscounted},
	} {
		if c.got > 0 {
			wrong = append(wrong, fmt.Sprintf("queue %s: %s: got %d, want none", v.queue(), c.what, c.got))
		}
	}
	if v.refused < 2 {
		wrong = append(wrong, fmt.Sprintf("queue %s: refused calls: got %d, want at least 2", v.queue(), v.refused))
	}
	return wrong
}
