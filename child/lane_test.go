package child

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"queuekeeper/internal/wire"
	"queuekeeper/jobs"
)

// lane enqueues n jobs of a lane.
func (r *rig) lane(lane, name string, n int) {
	r.t.Helper()
	r.exec(`insert into jobs (queue, name, lane) select $1, $2, $3 from generate_series(1, $4)`, queue, name, lane, n)
}

func TestALaneLimitHoldsWhileOtherLanesGoOn(t *testing.T) {
	r := newRig(t)
	r.worker.Concurrency, r.worker.PerLane = 4, 4
	var s starts
	r.handle("quick", s.quick)
	for i := range 10 {
		r.lane(fmt.Sprint("lane ", i), "quick", 6)
	}
	r.start()
	r.done(60)
	for i := range 10 {
		lane := fmt.Sprint("lane ", i)
		holdsRate(t, lane, times(s.of(lane)), 4, 1)
	}
	// One lane takes 1.3 s; ten, one after the other, would take thirteen.
	at := times(s.of(""))
	if took := at[59].Sub(at[0]); took > 4*time.Second {
		t.Errorf("ten lanes of six jobs at 4 per second and lane took %v, want little more than 1.3s", took)
	}
}

func TestALaneLimitHoldsOverKills(t *testing.T) {
	m := newMarking(t)
	m.set.Worker.Concurrency, m.set.Worker.PerLane = 4, 4
	lanes := []string{"a", "b", "c", "d", "e"}
	for _, lane := range lanes {
		m.lane(lane, "Mark", 8)
	}
	m.start()
	for _, n := range []int{3, 9, 16, 24} {
		m.killAt(n)
	}
	m.done(40)
	for _, lane := range lanes {
		var at []time.Time
		for _, one := range m.starts() {
			if one.lane == lane {
				at = append(at, one.at)
			}
		}
		holdsRate(t, lane, at, 4, 1)
	}
}

func TestEveryLaneWaitsAnIntervalAfterATakeOverAndNoneAfterARelease(t *testing.T) {
	r := newRig(t)
	r.worker.Concurrency, r.worker.PerLane = 4, 1
	var s starts
	r.handle("quick", s.quick)
	r.start()
	r.ready()
	r.lane("a", "quick", 1)
	r.done(1)
	r.stop() // its lane has had its turn
	again := r.next()
	again.lane("a", "quick", 1)
	again.lane("b", "quick", 1)
	began := time.Now()
	again.start()
	again.done(3)
	holdsRate(t, "a", times(s.of("a")), 1, 1)
	if waited := s.of("b")[0].at.Sub(began); waited > 600*time.Millisecond {
		t.Errorf("after a release a lane that had started nothing waited %v, want not at all", waited)
	}
	again.stop()
	again.exec(`update queues set lanes_empty_at = now() - interval '1 h'`)
	again.exec(`update lanes set empty_at = now() - interval '1 h'`)
	again.died()
	last := again.next()
	last.lane("b", "quick", 1)
	last.lane("c", "quick", 1)
	began = time.Now()
	last.start()
	last.done(5)
	for _, lane := range []string{"b", "c"} {
		all := s.of(lane)
		if waited := all[len(all)-1].at.Sub(began); waited < time.Second {
			t.Errorf("after a take-over lane %s waited %v, want an interval, 1s", lane, waited)
		}
	}
}

func TestANewLaneStartsWithinTwoTurnsOfAFlood(t *testing.T) {
	for _, others := range []int{0, 3} {
		t.Run(fmt.Sprint(others, " lanes beside it"), func(t *testing.T) {
			r := newRig(t)
			var s starts
			r.handle("quick", s.quick)
			r.lane("flood", "quick", 5000)
			for i := range others {
				r.lane(fmt.Sprint("other ", i), "quick", 2000)
			}
			r.start()
			s.reach(r, "", 50)
			for i := range 5 {
				lane := fmt.Sprint("new ", i)
				r.lane(lane, "quick", 1)
				from := s.count("") // the insert is there
				s.reach(r, lane, 1)
				all, before := s.of(""), 0
				for _, one := range all[from:] {
					if one.lane == lane {
						break
					}
					before++
				}
				// What runs and what was asked for when it came; then two turns of each lane.
				if most := 2 + 2*(1+others); before > most {
					t.Errorf("%d starts of others before the first of %s, want at most %d", before, lane, most)
				}
			}
		})
	}
}

func TestWeightsGiveTheirShares(t *testing.T) {
	for _, concurrency := range []int{1, 8} {
		r := newRig(t)
		r.worker.Concurrency = concurrency
		r.worker.Lanes = map[string]int{"a": 5, "b": 3}
		var s starts
		r.handle("quick", s.quick)
		for _, lane := range []string{"a", "b", "one", "two"} {
			r.lane(lane, "quick", 300)
		}
		r.start()
		s.reach(r, "", 410)
		r.stop()
		got := map[string]int{}
		for _, one := range s.of("")[10:410] { // the first claim does not know of lanes
			got[one.lane]++
		}
		for lane, want := range map[string]int{"a": 200, "b": 120, "one": 40, "two": 40} {
			if off := got[lane] - want; off < -8 || off > 8 {
				t.Errorf("concurrency %d, 400 starts: lane %s has %d, want %d, give or take 2 %%", concurrency, lane, got[lane], want)
			}
		}
	}
}

func TestNewWeightsHoldInTheRunningChild(t *testing.T) {
	r := newRig(t)
	var s starts
	r.handle("quick", s.quick)
	r.lane("a", "quick", 2000)
	r.lane("b", "quick", 2000)
	r.start()
	s.reach(r, "", 100)
	r.change(func(to *wire.Changed) { to.Worker.Lanes = map[string]int{"b": 4} })
	from := s.count("") + 20
	s.reach(r, "", from+100)
	got := 0
	for _, one := range s.of("")[from : from+100] {
		if one.lane == "b" {
			got++
		}
	}
	if got < 78 || got > 82 {
		t.Errorf("starts of the lane of weight 4 of a hundred, beside one of weight 1: got %d, want 80", got)
	}
	r.want(`select concat_ws('/', n, c) from queues`, "1/1") // the same process
}

func TestANewLaneLimitHoldsInTheRunningChild(t *testing.T) {
	r := newRig(t)
	r.worker.Concurrency = 2
	var s starts
	r.handle("quick", s.quick)
	for _, lane := range []string{"a", "b"} {
		r.lane(lane, "quick", 3000)
	}
	r.start()
	s.reach(r, "", 20)
	// limit sets another limit, waits for so many starts under it, and returns those of a lane.
	limit := func(perSecond float64, n int) (changed time.Time, of func(lane string) []time.Time) {
		changed = time.Now()
		r.change(func(to *wire.Changed) { to.Worker.PerLane = perSecond })
		heard := time.Now()
		s.reach(r, "", s.count("")+n)
		return changed, func(lane string) []time.Time {
			at := times(s.of(lane))
			return at[slices.IndexFunc(at, heard.Before):]
		}
	}
	changed, of := limit(2, 6)
	for _, lane := range []string{"a", "b"} {
		at := of(lane)
		holdsRate(t, lane+" at 2/s", at, 2, 1)
		if waited := at[0].Sub(changed); waited < 450*time.Millisecond || waited > 1500*time.Millisecond {
			t.Errorf("lane %s goes on %v after the change to 2/s, want one turn later, 505ms", lane, waited)
		}
	}
	<-time.After(300 * time.Millisecond) // part of the script: time for several starts at the next limit
	changed, of = limit(20, 20)
	for _, lane := range []string{"a", "b"} {
		at := of(lane)
		holdsRate(t, lane+" at 20/s", at, 20, 1)
		if waited := at[0].Sub(changed); waited < 45*time.Millisecond {
			t.Errorf("lane %s goes on %v after the change to 20/s, want one turn later, 51ms", lane, waited)
		}
	}
	if took := time.Since(changed); took > 1500*time.Millisecond {
		t.Errorf("ten starts of each lane at 20/s took %v, want half a second", took)
	}
	limit(0, 500)
	r.want(`select concat_ws('/', n, c) from queues`, "1/1")
}

// The one job of its lane that Postgres lets nobody claim costs the others nothing but its turn.
func TestARefusedJobHoldsUpItsOwnTurnOnly(t *testing.T) {
	for order, concurrency := range map[string]int{"due": 1, "strict": 1, "due, side by side": 4} {
		t.Run(order, func(t *testing.T) {
			r := newRig(t)
			r.worker.Concurrency, r.worker.PollInterval = concurrency, time.Hour
			if order == "strict" {
				r.worker.Order = order
			}
			r.set.Times.RetryBase, r.set.Times.RetryMax = time.Hour, time.Hour
			r.exec(`create function refuse() returns trigger language plpgsql as $$
				begin
					if new.lane = 'b' and new.state = 'running' then raise exception 'no' using errcode = '23514'; end if;
					return new;
				end $$`)
			r.exec(`create trigger refuse before update on jobs for each row execute function refuse()`)
			r.handle("ok", func(context.Context, jobs.Job) error { return nil })
			r.lane("a", "ok", 40)
			r.lane("b", "ok", 1)
			r.lane("c", "ok", 40)
			r.start()
			r.until(`select count(*) = 80 from jobs where state = 'done'`)
			r.want(`select state from jobs where lane = 'b'`, "pending")
		})
	}
}

// In a lane that is limited its turn comes before those of the lane's other jobs, which are many.
func TestASuspectGetsItsTurnInALimitedLane(t *testing.T) {
	r := newRig(t)
	r.worker.PerLane, r.worker.PollInterval = 10, 200*time.Millisecond
	var s starts
	r.handle("quick", s.quick)
	r.lane("a", "quick", 500)
	r.start()
	s.reach(r, "", 5)
	r.exec(`insert into jobs (queue, name, lane, attempts, max_attempts) values ('q', 'quick', 'a', 3, 3)`)
	from := s.count("")
	r.until(`select count(*) = 1 from jobs where state = 'done' and attempts = 4`)
	if before := s.count("") - from; before > 50 {
		t.Errorf("starts of its lane before the suspect: got %d, want at most 50", before)
	}
	holdsRate(t, "the lane", times(s.of("")), 10, 1)
}
