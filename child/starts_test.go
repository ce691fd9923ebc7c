package child

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"queuekeeper/internal/eventually"
	"queuekeeper/internal/windows"
	"queuekeeper/jobs"
)

// start is one start of a handler, as the loop counts it.
type start struct {
	at      time.Time
	id      int64
	lane    string
	attempt int
}

// starts are those of all children of a test.
type starts struct {
	mu  sync.Mutex
	all []start
}

// note is called by a handler at its beginning. It may have begun late; its context was made at the start.
func (s *starts) note(ctx context.Context, j jobs.Job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, start{startOf(ctx), j.ID, j.Lane, j.Attempt})
}

// startOf is when a job was started that has the rig's timeout.
func startOf(ctx context.Context) time.Time {
	end, _ := ctx.Deadline()
	return end.Add(-time.Minute)
}

// quick is a handler that notes its start and is done.
func (s *starts) quick(ctx context.Context, j jobs.Job) error {
	s.note(ctx, j)
	return nil
}

// of are the starts of a lane so far; "": of all.
func (s *starts) of(lane string) (all []start) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.all {
		if lane == "" || one.lane == lane {
			all = append(all, one)
		}
	}
	return all
}

func (s *starts) count(lane string) int { return len(s.of(lane)) }

// times are the times of starts.
func times(all []start) (at []time.Time) {
	for _, one := range all {
		at = append(at, one.at)
	}
	return at
}

// reach waits until there are as many starts in a lane, or in all.
func (s *starts) reach(r *rig, lane string, n int) {
	r.t.Helper()
	eventually.OK(r.t, 20*time.Second, func() error {
		if got := s.count(lane); got < n {
			return fmt.Errorf("starts in lane %q: got %d, want %d\n%s\nlog:\n%s", lane, got, n, r.rows(), r.log)
		}
		return nil
	})
}

// holdsRate fails if any window has more starts than a rate allows, whatever its length.
func holdsRate(t testing.TB, what string, at []time.Time, perSecond float64, burst int) {
	t.Helper()
	for i := range at {
		for j := i; j < len(at); j++ {
			w := max(windows.Shortest(perSecond), at[j].Sub(at[i])+1)
			if got, most := j-i+1, windows.Allowed(perSecond, burst, w); got > most {
				t.Fatalf("%s: %d starts in a window of %v, want at most %d", what, got, w, most)
			}
		}
	}
}

func holdsQuota(t testing.TB, at []time.Time, n int, window time.Duration) {
	t.Helper()
	if got := windows.Largest(at, window); got > n {
		t.Errorf("starts in a window of %v: got %d, want at most %d", window, got, n)
	}
}

// next is the child that comes after this one on the same database, with the same settings and handlers.
func (r *rig) next() *rig {
	n := rigOn(r.t, r.url)
	n.worker, n.own, n.set = r.worker, r.own, r.set
	n.set.N++
	return n
}

// died makes the row of a queue whose child has left that of one whose child, of another supervisor, has died.
func (r *rig) died() {
	r.t.Helper()
	r.exec(`update queues set supervisor = 's0', n = 1, c = 1, host = 'elsewhere', pid = 1, expires_at = now() - interval '1 s'`)
}
