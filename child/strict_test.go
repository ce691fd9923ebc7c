package child

import (
	"context"
	"errors"
	"testing"
	"time"

	"queuekeeper/jobs"
)

// inOrder fails if a job of a lane was started after a later one of it.
func inOrder(t testing.TB, lane string, all []start) {
	t.Helper()
	last := int64(0)
	for _, one := range all {
		if one.lane != lane {
			continue
		}
		if one.id < last {
			t.Errorf("lane %s: job %d was started after job %d", lane, one.id, last)
		}
		last = one.id
	}
}

var strictLanes = []string{"a", "b", "c", "d"}

// One job of lane a fails three times, and each time waits longer than the others need.
func TestAFailingJobIsNotOvertakenWhileOtherLanesGoOn(t *testing.T) {
	r := newRig(t)
	r.worker.Order, r.worker.Concurrency = "strict", 4
	r.set.Times.RetryBase, r.set.Times.RetryMax = time.Second, time.Second
	var s starts
	r.handle("work", func(ctx context.Context, j jobs.Job) error {
		s.note(ctx, j)
		if j.ID == 3 && j.Attempt <= 3 {
			return errors.New("no luck")
		}
		return nil
	})
	for _, lane := range strictLanes {
		r.lane(lane, "work", 10)
	}
	r.start()
	r.until(`select count(*) = 30 from jobs where lane <> 'a' and state = 'done'`)
	r.want(`select string_agg(state, ' ' order by id) from jobs where id <= 4`, "done done pending pending")
	r.done(40)
	for _, lane := range strictLanes {
		inOrder(t, lane, s.of(lane))
	}
	r.want(`select attempts::text from jobs where id = 3`, "4")
}

func TestLanesGoOnBehindADeadJobWhereOrderIsStrict(t *testing.T) {
	r := newRig(t)
	r.worker.Order, r.worker.Concurrency, r.worker.MaxAttempts = "strict", 4, 3
	var s starts
	r.handle("work", func(ctx context.Context, j jobs.Job) error {
		s.note(ctx, j)
		if j.ID == 1 {
			return errors.New("no luck")
		}
		return nil
	})
	r.lane("a", "work", 3)
	r.start()
	r.until(`select string_agg(state, ' ' order by id) = 'dead done done' from jobs`)
	inOrder(t, "a", s.of("a"))
	if got := s.count("a"); got != 5 {
		t.Errorf("starts: got %d, want three of the first and one of each other", got)
	}
}

// Refused, or claimed and given back: a job keeps its place in its lane.
func TestAThrottledJobIsNotOvertakenWhereOrderIsStrict(t *testing.T) {
	for _, scope := range []jobs.Scope{jobs.ScopeQueue, jobs.ScopeLane} {
		r := newRig(t)
		r.worker.Order, r.worker.Concurrency = "strict", 4
		var s starts
		no := jobs.ThrottledIn(scope, 50*time.Millisecond, err429)
		r.handle("call", s.refuses(nil, nil, no, no, no, nil, no))
		for _, lane := range strictLanes {
			r.lane(lane, "call", 5)
		}
		r.start()
		r.done(20)
		for _, lane := range strictLanes {
			inOrder(t, lane, s.of(lane))
		}
	}
}

// The first of lane a was running when its process died: until its back-off is over the second waits.
func TestStrictOrderHoldsOverATakeOver(t *testing.T) {
	r := newRig(t)
	r.worker.Order, r.worker.Concurrency = "strict", 4
	r.set.Times.RetryBase, r.set.Times.RetryMax = 500*time.Millisecond, 500*time.Millisecond
	r.exec(`insert into queues (queue, epoch, supervisor, n, c, host, pid, expires_at)
		values ('q', 7, 's0', 1, 1, 'elsewhere', 1, now() - interval '1 s')`)
	var s starts
	r.handle("work", s.quick)
	r.exec(`insert into jobs (queue, name, lane, state, epoch, attempts, max_attempts, locked_at) values ('q', 'work', 'a', 'running', 7, 1, 20, now())`)
	r.lane("a", "work", 3)
	r.lane("b", "work", 3)
	r.start()
	r.until(`select count(*) = 3 from jobs where lane = 'b' and state = 'done'`)
	r.want(`select count(*)::text from jobs where lane = 'a' and state = 'done'`, "0")
	r.done(7)
	inOrder(t, "a", s.of("a"))
}

func TestStrictOrderHoldsOverKills(t *testing.T) {
	m := newMarking(t)
	m.set.Worker.Order, m.set.Worker.Concurrency = "strict", 4
	for _, lane := range strictLanes {
		m.lane(lane, "Flaky", 25)
	}
	m.start()
	for _, n := range []int{10, 30, 55, 80} {
		m.killAt(n)
	}
	m.done(100)
	for _, lane := range strictLanes {
		inOrder(t, lane, m.starts())
	}
	if got := len(m.starts()); got < 120 {
		t.Errorf("starts: got %d, want 120 or more: each fifth job fails once", got)
	}
}
