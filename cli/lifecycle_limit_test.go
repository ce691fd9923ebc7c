package cli_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"queuekeeper/internal/windows"
)

// paced is a file whose one queue has a rate.
func paced(rate int) string {
	return fmt.Sprintf("[[worker]]\nqueue = \"go\"\nmax_jobs_per_second = %d\n", rate)
}

// From slow to quick and back: the process stays, and no window is over the limit that held, the one in which it
// changed included.
func TestNewLimitReachesTheRunningChild(t *testing.T) {
	t.Parallel()
	const slow, quick = 2, 40
	s := newSite(t, paced(slow))
	s.exec(`insert into jobs (queue, name) select 'go', 'Mark' from generate_series(1, 300)`)
	p := s.run()
	child := p.ready("go")
	doneBy := func(n int) { s.until(`select count(*) >= $1 from jobs where state = 'done'`, n) }

	doneBy(2)
	raised := time.Now()
	p.limit(quick)
	doneBy(22) // at the slow rate that takes 10 s
	p.limit(slow)
	lowered := time.Now()
	doneBy(value[int](s, `select count(*) + 3 from jobs where state = 'done'`))
	raisedAgain := time.Now()
	p.limit(400)
	s.allDone()

	s.within(slow, time.Time{}, raised)
	s.within(quick, raised, lowered)
	s.within(slow, lowered, raisedAgain)
	if now := p.ready("go"); now != child {
		t.Errorf("child: got process %d, want still %d", now, child)
	}
	p.stop()
	s.cleanEnd("300 done")
}

// limit has the child take on another rate.
func (p *process) limit(rate int) {
	p.s.t.Helper()
	p.more(`limits taken on: queue=go max_jobs_per_second=\d+ burst=1 `, func() { p.reload(paced(rate)) })
	p.s.until(`select (settings ->> 'max_jobs_per_second')::int = $1 from queues`, rate)
}

// within fails if there was a window of a second between two moments with more starts than a rate allows.
func (s *site) within(rate float64, from, to time.Time) {
	s.t.Helper()
	starts := slices.DeleteFunc(s.marks("Mark"), func(at time.Time) bool { return at.Before(from) || !at.Before(to) })
	if got, want := windows.Largest(starts, time.Second), windows.Allowed(rate, 1, time.Second); got > want {
		s.t.Errorf("starts in a second at a rate of %v: got %d, want at most %d", rate, got, want)
	}
}
