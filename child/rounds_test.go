package child

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"queuekeeper/internal/eventually"
	"queuekeeper/internal/testdb"
	"queuekeeper/jobs"
)

// countSteps has Postgres count the Steps from now on: each writes the row of its queue.
func (r *rig) countSteps() {
	r.t.Helper()
	r.exec(`
		create sequence steps minvalue 0;
		create function count_step() returns trigger language plpgsql as $$ begin perform nextval('steps'); return null; end $$;
		create trigger count_step after update on queues for each statement execute function count_step()`)
}

// rests waits until the child has said nothing for a while.
func (r *rig) rests() {
	r.t.Helper()
	before, since := int64(-1), time.Now()
	eventually.OK(r.t, 20*time.Second, func() error {
		if now := value[int64](r, `select last_value from steps`); now != before {
			before, since = now, time.Now()
		}
		if time.Since(since) < 300*time.Millisecond {
			return fmt.Errorf("after %d Steps: got another within 300ms, want none, for there is nothing to say", before)
		}
		return nil
	})
}

// Of ten lanes with a job each one is served, and a new one comes that is last in the order of names.
func TestNewLanesWithHigherNamesKeepNobodyWaiting(t *testing.T) {
	for _, order := range []string{"due", "strict"} {
		for _, concurrency := range []int{1, 4} {
			t.Run(fmt.Sprint(order, ", concurrency ", concurrency), func(t *testing.T) {
				r := newRig(t)
				r.worker.Order, r.worker.Concurrency = order, concurrency
				var s starts
				var mu sync.Mutex
				last, conn := 10, testdb.Connect(t, r.url)
				r.handle("next", func(ctx context.Context, j jobs.Job) error {
					s.note(ctx, j)
					mu.Lock()
					defer mu.Unlock()
					if last == 100 {
						return nil
					}
					last++
					lanes := []string{fmt.Sprintf("order %03d", last)}
					if last == 25 {
						lanes = append(lanes, "order 000")
					}
					_, err := conn.Exec(ctx, `insert into jobs (queue, name, lane) select 'q', 'next', unnest($1::text[])`, lanes)
					return err
				})
				for i := range 10 {
					r.lane(fmt.Sprintf("order %03d", i+1), "next", 1)
				}
				r.start()
				r.done(101)
				// It comes with the 15th start. Ten are left of that round at most, and what is in hand.
				if at := slices.IndexFunc(s.of(""), func(one start) bool { return one.lane == "order 000" }); at > 40 {
					t.Errorf("the lowest lane, new with the 15th start: got its first as number %d, want it among the first 40", at+1)
				}
			})
		}
	}
}

// More lanes wait for their turn than are named to a claim: such as have another job, and such as have none.
func TestMoreLimitedLanesThanAClaimNamesAllHaveTheirTurn(t *testing.T) {
	const lanes = 1500
	for _, each := range []int{1, 2} {
		t.Run(fmt.Sprint(each, " jobs of each"), func(t *testing.T) {
			r := newRig(t)
			r.worker.Concurrency, r.worker.PerLane = 50, 0.01
			r.set.Lease, r.worker.PollInterval = time.Hour, time.Hour
			r.countSteps()
			var s starts
			r.handle("quick", s.quick)
			r.exec(`insert into queues (queue, lanes_empty_at) values ('q', now() - interval '1 day')`)
			r.exec(`insert into jobs (queue, name, lane) select 'q', 'quick', 'lane ' || i % $1 from generate_series(1, $1::int * $2::int) i`, lanes, each)
			r.start()
			s.reach(r, "", lanes)
			r.rests()
			from := value[int](r, `select last_value from steps`)
			// A new one is found beside those that wait: below them, between them and beyond, wherever the last was.
			for i, lane := range []string{"z", "a", "lane 7000", "zz", "b", "zzz"} {
				r.lane(lane, "quick", 1)
				s.reach(r, "", lanes+i+1)
				r.rests()
			}
			// A claim visits 150 of them: ten do for a round, and two rounds for a search.
			if got := value[int](r, `select last_value from steps`) - from; got > 6*40 {
				t.Errorf("Steps for six jobs: got %d, want at most 240", got)
			}
			per := map[string]int{}
			for _, one := range s.of("") {
				if per[one.lane]++; per[one.lane] > 1 {
					t.Errorf("lane %q: got %d starts within its interval, want 1", one.lane, per[one.lane])
				}
			}
		})
	}
}

// What cannot be started, for no handler takes it, spends no turn: its lane's next job has it.
func TestAJobThatCannotStartLeavesItsTurnToTheNextOfItsLane(t *testing.T) {
	for name, c := range map[string]struct{ first, state string }{
		"unknown name":         {`('q', 'unknown', 'a', '{}')`, "pending"},
		"args nested too deep": {`('q', 'quick', 'a', (repeat('[', 5000) || repeat(']', 5000))::jsonb)`, "dead"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.worker.Concurrency, r.worker.PerLane = 8, 100
			r.set.Lease, r.worker.PollInterval = time.Hour, time.Hour
			r.set.Times.RetryBase, r.set.Times.RetryMax = time.Hour, time.Hour
			var s starts
			r.handle("quick", s.quick)
			r.exec(`insert into jobs (queue, name, lane, args) values ` + c.first)
			r.lane("a", "quick", 3)
			r.start()
			r.until(`select count(*) = 3 from jobs where state = 'done'`)
			r.want(`select state from jobs where id = 1`, c.state)
			holdsRate(t, "the lane", times(s.of("a")), 100, 1)
		})
	}
}

// A suspect is started while nothing else runs. One whose lane is paused is not waited for.
func TestASuspectInAPausedLaneHoldsNobodyUp(t *testing.T) {
	r := newRig(t)
	r.worker.Concurrency = 2
	r.set.Lease, r.worker.PollInterval = time.Hour, time.Hour
	began, end := make(chan int64, 2), make(chan struct{})
	r.handle("hold", func(_ context.Context, j jobs.Job) error {
		began <- j.ID
		<-end
		return nil
	})
	r.exec(`insert into jobs (queue, name, lane, attempts, max_attempts) values ('q', 'hold', 'x', 3, 3)`)
	if _, err := jobs.Schema("").Pause(t.Context(), r.conn, queue, "x", time.Hour, "why"); err != nil {
		t.Fatal(err)
	}
	r.lane("b", "hold", 1)
	r.countSteps()
	r.start()
	<-began
	r.rests() // by now it has heard what is due
	r.lane("b", "hold", 1)
	eventually.OK(t, 10*time.Second, func() error {
		if len(began) == 0 {
			return errors.New("a second job beside the first: got none, want it though there is a suspect in a paused lane")
		}
		return nil
	})
	close(end)
	r.until(`select count(*) = 2 from jobs where state = 'done'`)
	r.want(`select concat_ws('/', state, attempts) from jobs where id = 1`, "pending/3")
}
