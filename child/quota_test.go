package child

import (
	"testing"
	"time"

	"queuekeeper/config"
)

func TestQuotaHoldsAndCanBeUsedUp(t *testing.T) {
	r := newRig(t)
	r.worker.Concurrency = 4
	r.worker.Quotas = []config.Quota{{Starts: 50, Window: time.Second}}
	var s starts
	r.handle("quick", s.quick)
	r.insert("quick", 260)
	r.start()
	r.done(260)
	at := times(s.of(""))
	holdsQuota(t, at, 50, time.Second)
	// 97.5 % of it take 5.4 s at most; and a moment for the Steps.
	if took, most := at[len(at)-1].Sub(at[0]), 5700*time.Millisecond; took > most {
		t.Errorf("260 starts at 50 per second took %v, want at most %v", took, most)
	}
}

func TestQuotasHoldSideBySide(t *testing.T) {
	r := newRig(t)
	r.worker.Concurrency = 3
	r.worker.Quotas = []config.Quota{{Starts: 20, Window: time.Second}, {Starts: 30, Window: 3 * time.Second}}
	var s starts
	r.handle("quick", s.quick)
	r.insert("quick", 50)
	r.start()
	r.done(50)
	at := times(s.of(""))
	holdsQuota(t, at, 20, time.Second)
	holdsQuota(t, at, 30, 3*time.Second)
	if got := at[29].Sub(at[0]); got > 1500*time.Millisecond {
		t.Errorf("the longer one was used up after %v, want little more than a second", got)
	}
}

func TestQuotaHoldsOverRestarts(t *testing.T) {
	r := newRig(t)
	r.worker.Concurrency = 4
	r.worker.Quotas = []config.Quota{{Starts: 40, Window: 2 * time.Second}}
	var s starts
	r.handle("quick", s.quick)
	r.insert("quick", 100)
	for _, n := range []int{15, 33, 50, 70} {
		r.start()
		s.reach(r, "", n)
		r.stop()
		r = r.next()
	}
	r.start()
	r.done(100)
	at := times(s.of(""))
	holdsQuota(t, at, 40, 2*time.Second)
	// A release stores what has started and nothing more.
	if took := at[len(at)-1].Sub(at[0]); took > 5*time.Second {
		t.Errorf("100 starts at 40 in two seconds took %v, want little more than 4.1 s", took)
	}
}

func TestUnreadableQuotasAreCountedAnewFromTheJobs(t *testing.T) {
	r := newRig(t)
	r.worker.Concurrency = 4
	r.worker.Quotas = []config.Quota{{Starts: 50, Window: 3 * time.Second}}
	var s starts
	r.handle("quick", s.quick)
	r.exec(`insert into queues (queue, quotas) values ('q', 'garbage')`)
	r.insert("quick", 60)
	before := time.Now()
	r.exec(`insert into jobs (queue, name, state, attempts, started_at, finished_at)
		select 'q', 'done before', 'done', 1, now() - interval '500 ms', now() from generate_series(1, 30)`)
	r.start()
	r.done(90)
	at := times(s.of(""))
	if waited := at[20].Sub(before); waited < 2500*time.Millisecond {
		t.Errorf("the 51st start came %v after the first 30 were half a second old, want at least 2.5s", waited)
	}
	if waited := at[19].Sub(before); waited > 2*time.Second {
		t.Errorf("the 50th start came after %v, want at once", waited)
	}
	holdsQuota(t, at, 50, 3*time.Second)
	if !r.log.has("counted anew") {
		t.Errorf("log: got no word that the quotas are counted anew:\n%s", r.log)
	}
}

// What cannot be read may be of a process that knew better: its bucket is not trusted either.
func TestPaceStartsEmptyWhereQuotasAreUnreadable(t *testing.T) {
	r := newRig(t)
	r.worker.MaxJobsPerSecond = 1
	r.worker.Quotas = []config.Quota{{Starts: 50, Window: 3 * time.Second}}
	var s starts
	r.handle("quick", s.quick)
	r.exec(`insert into queues (queue, quotas, empty_at) values ('q', 'garbage', now() - interval '1 h')`)
	r.insert("quick", 1)
	before := time.Now()
	r.start()
	r.done(1)
	if waited := times(s.of(""))[0].Sub(before); waited < time.Second || waited > 3*time.Second {
		t.Errorf("first start after %v, want one turn later, 1s", waited)
	}
}

func TestQuotaHoldsOverKills(t *testing.T) {
	m := newMarking(t)
	m.set.Worker.Concurrency = 4
	m.set.Worker.Quotas = []config.Quota{{Starts: 60, Window: 2 * time.Second}}
	m.insert("Mark", 180)
	m.start()
	for _, n := range []int{7, 20, 38, 55, 70, 100, 125} {
		m.killAt(n)
	}
	m.done(180)
	at := times(m.starts())
	if len(at) < 180 {
		t.Fatalf("starts: got %d, want 180 or more", len(at))
	}
	holdsQuota(t, at, 60, 2*time.Second)
}
