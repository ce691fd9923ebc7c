package child

import (
	"fmt"
	"testing"
	"time"

	"queuekeeper/internal/testdb"
	"queuekeeper/jobs"
)

// away does something while the child has no connection and gets none.
func (r *rig) away(do func()) {
	r.t.Helper()
	other := testdb.Connect(r.t, testdb.Empty(r.t)) // nobody can shut the database that he is in
	allow := func(is bool) {
		r.t.Helper()
		database := value[string](r, `select quote_ident(current_database())`)
		if _, err := other.Exec(r.t.Context(), fmt.Sprintf(`alter database %s allow_connections %v`, database, is)); err != nil {
			r.t.Fatal(err)
		}
	}
	allow(false)
	r.cut()
	r.until(`select count(*) = 0 from pg_stat_activity where datname = current_database() and application_name like 'queuekeeper %'`)
	do()
	allow(true)
}

func (r *rig) pause(lane string, howLong time.Duration) {
	r.t.Helper()
	if _, err := jobs.Schema("").Pause(r.t.Context(), r.conn, queue, lane, howLong, "by hand"); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) resume(lane string) {
	r.t.Helper()
	if _, err := jobs.Schema("").Resume(r.t.Context(), r.conn, queue, lane); err != nil {
		r.t.Fatal(err)
	}
}

// unheard has no notification arrive in the database, as behind a pooler, and returns a rig that lives with it.
func unheard(t *testing.T) *rig {
	t.Helper()
	r := newRig(t)
	r.exec(`
		create function pg_notify(text, text) returns void language sql as '';
		do $$ begin execute format('alter database %I set search_path = public, pg_catalog', current_database()); end $$`)
	return rigOn(t, r.url)
}

// pauseChanges are what an operator does about a pause of an hour that an API ordered, of which the child knows.
var pauseChanges = map[string]struct {
	scope  jobs.Scope
	change func(*rig)
}{
	"queue resumed": {jobs.ScopeQueue, func(r *rig) { r.resume("") }},
	"queue shortened": {jobs.ScopeQueue, func(r *rig) {
		r.exec(`update queues set paused_until = now() + interval '2 s', pause_reason = 'shorter'`)
	}},
	"lane resumed":                {jobs.ScopeLane, func(r *rig) { r.resume("a") }},
	"lane resumed with its queue": {jobs.ScopeLane, func(r *rig) { r.resume("") }},
	"lane shortened": {jobs.ScopeLane, func(r *rig) {
		r.exec(`update lanes set paused_until = now() + interval '2 s'; update queues set lanes_paused_until = now() + interval '2 s'`)
	}},
}

func TestAPauseChangedWhileTheChildIsAwayIsTakenOn(t *testing.T) {
	for name, c := range pauseChanges {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.set.Lease, r.worker.PollInterval, r.worker.Concurrency = time.Hour, time.Hour, 4
			var s starts
			r.handle("call", s.refuses(jobs.ThrottledIn(c.scope, time.Hour, err429)))
			r.lane("a", "call", 1)
			r.start()
			r.until(`select throttled = 1 from jobs`)
			r.away(func() { c.change(r) })
			r.done(1)
		})
	}
}

func TestALanePausedWhileTheChildIsAwayStartsNothing(t *testing.T) {
	r := newRig(t)
	r.set.Lease, r.worker.PollInterval, r.worker.Concurrency = time.Hour, time.Hour, 4
	var s starts
	r.handle("quick", s.quick)
	r.lane("a", "quick", 1)
	r.start()
	r.done(1)
	r.away(func() {
		r.pause("a", time.Hour)
		r.lane("a", "quick", 5)
		r.lane("b", "quick", 20)
	})
	s.reach(r, "b", 20)
	if got := s.count("a"); got != 1 {
		t.Errorf("starts in the paused lane: got %d, want the 1 before the pause", got)
	}
}

func TestAPauseChangedUnheardIsTakenOnAtThePollFloor(t *testing.T) {
	for name, c := range pauseChanges {
		t.Run(name, func(t *testing.T) {
			r := unheard(t)
			r.set.Lease, r.worker.PollInterval, r.worker.Concurrency = time.Hour, time.Hour, 4
			var s starts
			r.handle("call", s.refuses(jobs.ThrottledIn(c.scope, time.Hour, err429)))
			r.lane("a", "call", 1)
			r.start()
			r.until(`select throttled = 1 from jobs`)
			if !r.log.has("notifications do not arrive here") {
				t.Fatalf("log: got no word that nothing is heard:\n%s", r.log)
			}
			c.change(r)
			r.done(1)
		})
	}
}

func TestAQueueOrALanePausedByHandUnheardIsResumedAtThePollFloor(t *testing.T) {
	for _, lane := range []string{"", "a"} {
		t.Run("lane "+lane, func(t *testing.T) {
			r := unheard(t)
			r.set.Lease, r.worker.PollInterval = time.Hour, time.Hour
			r.claimLog()
			var s starts
			r.handle("quick", s.quick)
			r.lane("a", "quick", 1)
			r.start()
			r.done(1)
			r.pause(lane, 0)
			r.exec(`insert into claims (lane) values ('here')`)
			r.lane("a", "quick", 1)
			from := value[string](r, `select settled_at::text from queues`)
			r.until(`select settled_at::text <> $1 from queues`, from) // it has asked
			if got := r.claimedSince("a"); got != 0 {
				t.Errorf("claims in the pause: got %d, want none", got)
			}
			r.resume(lane)
			r.done(2)
		})
	}
}
