package child

import (
	"testing"
	"time"

	"queuekeeper/jobs"
)

const tellPause = `; select pg_notify('jobs_q', 'pause')`

// claimLog notes each claim, and what mark adds, in the order in which they got the row of the queue.
func (r *rig) claimLog() {
	r.t.Helper()
	r.exec(`
		create table claims (nr bigint generated always as identity, lane text, job bigint);
		create function note_claim() returns trigger language plpgsql as $$
		begin insert into claims (lane, job) values (new.lane, new.id); return null; end $$;
		create trigger note_claim after update on jobs for each row
			when (old.state <> 'running' and new.state = 'running') execute function note_claim()`)
}

// byHand changes rows as an operator may, in one transaction that has the row of the queue, and tells the child.
func (r *rig) byHand(sql string) {
	r.t.Helper()
	r.exec(`begin; select from queues for update; insert into claims (lane) values ('here'); ` + sql + tellPause + `; commit`)
}

// claimedSince are the claims of a lane since byHand; "": of all.
func (r *rig) claimedSince(lane string) int {
	r.t.Helper()
	return value[int](r, `select count(*) from claims
		where job is not null and (lane = $1 or $1 = '') and nr > (select max(nr) from claims where job is null)`, lane)
}

const (
	pauseAll   = `update queues set paused_until = 'infinity'`
	pauseLaneA = `insert into lanes (queue, lane, paused_until) values ('q', 'a', 'infinity')
		on conflict (queue, lane) do update set paused_until = excluded.paused_until; update queues set lanes_paused_until = 'infinity'`
	liftAll   = `update queues set paused_until = '-infinity', pause_reason = null`
	liftLaneA = `update lanes set paused_until = '-infinity'; update queues set lanes_paused_until = '-infinity'`
)

func TestAPauseLiftedByHandGoesOnAtOnceWithAnEmptyBucket(t *testing.T) {
	r := newRig(t)
	r.set.Lease, r.worker.PollInterval = time.Hour, time.Hour
	r.worker.Concurrency, r.worker.MaxJobsPerSecond, r.worker.Burst = 10, 4, 4
	r.claimLog()
	var s starts
	r.handle("call", s.refuses(jobs.Throttled(time.Hour, err429)))
	r.insert("call", 1)
	r.start()
	r.until(`select exists (select from queues where paused_until > now())`)
	r.insert("call", 9)
	<-time.After(1200 * time.Millisecond) // part of the script: that much would fill the bucket
	lifted := time.Now()
	r.byHand(liftAll)
	r.until(`select count(*) >= 6 from jobs where state = 'done'`)
	at := times(s.of(""))[1:]
	if waited := at[0].Sub(lifted); waited < 200*time.Millisecond || waited > time.Second {
		t.Errorf("first start %v after the pause was lifted, want one turn later, 252ms", waited)
	}
	for _, gap := range gaps(at) {
		if gap < 200*time.Millisecond {
			t.Errorf("starts after it: got gaps %v, want 252ms each", gaps(at))
			break
		}
	}
	if !r.log.has("changed by hand: for=0s") {
		t.Errorf("log: got no word that the pause was lifted:\n%s", r.log)
	}
}

func TestAPauseOfALaneLiftedByHandGoesOnAtOnce(t *testing.T) {
	for _, perLane := range []float64{0, 2} {
		r := newRig(t)
		r.set.Lease, r.worker.PollInterval, r.worker.PerLane = time.Hour, time.Hour, perLane
		r.claimLog()
		var s starts
		r.handle("call", s.refuses(jobs.ThrottledIn(jobs.ScopeLane, time.Hour, err429)))
		r.lane("a", "call", 2)
		r.start()
		r.until(`select exists (select from lanes where paused_until > now())`)
		<-time.After(time.Second) // part of the script
		lifted := time.Now()
		r.byHand(liftLaneA)
		r.done(2)
		at := times(s.of(""))[1:]
		if waited := at[0].Sub(lifted); waited > time.Second || perLane > 0 && waited < 400*time.Millisecond {
			t.Errorf("limit of the lane %g: first start %v after its pause was lifted, want a turn later, or at once without a limit", perLane, waited)
		}
		if perLane > 0 {
			holdsRate(t, "starts of the lane", at, perLane, 1)
		}
	}
}

func TestAPauseByHandStartsNothing(t *testing.T) {
	r := newRig(t)
	r.set.Lease, r.worker.PollInterval = time.Hour, time.Hour
	r.worker.Concurrency = 2
	r.claimLog()
	var s starts
	r.handle("quick", s.quick)
	r.insert("quick", 3000)
	r.start()
	s.reach(r, "", 20)
	r.byHand(pauseAll)
	r.until(`select count(*) = 0 from jobs where state = 'running'`)
	r.insert("quick", 1) // which is told, too
	r.until(`select count(*) = 0 from jobs where state = 'running'`)
	if got := r.claimedSince(""); got != 0 {
		t.Errorf("claims in the pause: got %d, want none", got)
	}
	from := s.count("")
	r.byHand(liftAll)
	s.reach(r, "", from+20)
}

// The claims of one lane, where the child has heard of no other, do not look at lanes.
func TestAPauseOfALaneByHandStartsNothingOfIt(t *testing.T) {
	for name, lanes := range map[string][]string{"beside another": {"a", "b"}, "of the only one": {"a"}} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.set.Lease, r.worker.PollInterval = time.Hour, time.Hour
			r.worker.Concurrency = 4
			r.claimLog()
			var s starts
			r.handle("quick", s.quick)
			for _, lane := range lanes {
				r.lane(lane, "quick", 3000)
			}
			r.start()
			s.reach(r, "a", 20)
			r.byHand(pauseLaneA)
			r.lane("b", "quick", 50) // it goes on
			from := s.count("b")
			s.reach(r, "b", from+50)
			if got := r.claimedSince("a"); got != 0 {
				t.Errorf("claims of the paused lane: got %d, want none", got)
			}
			from = s.count("a")
			r.byHand(liftLaneA)
			s.reach(r, "a", from+20)
		})
	}
}

// A job is claimed and waits for its turn when the pause comes.
func TestAPauseByHandGivesBackWhatIsPlanned(t *testing.T) {
	for name, pause := range map[string]string{"of the queue": pauseAll, "of its lane": pauseLaneA} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.set.Lease, r.worker.PollInterval = time.Minute, time.Minute
			r.worker.Concurrency, r.worker.MaxJobsPerSecond = 10, 2
			r.claimLog()
			var s starts
			r.handle("quick", s.quick)
			r.lane("a", "quick", 5)
			r.start()
			s.reach(r, "", 1)
			r.slowStep() // the second comes with it
			s.reach(r, "", 2)
			r.until(`select state = 'running' from jobs where id = 3`)
			from := s.count("")
			r.byHand(pause)
			r.until(`select count(*) = 0 from jobs where state = 'running'`)
			r.want(`select count(*)::text from jobs where state = 'pending' and attempts = 1 and excused = 1 and started_at is null`, "1")
			if got := s.count(""); got != from {
				t.Errorf("starts: got %d, want those before the pause, %d", got, from)
			}
		})
	}
}
