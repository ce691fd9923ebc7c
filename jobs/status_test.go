package jobs_test

import (
	"fmt"
	"testing"
	"time"

	"queuekeeper/jobs"
)

// A queue is released, or never held, paused for ever or not at all, with jobs of every state or none: what is
// infinite or missing in its row must not stop the answer for the others.
func TestStatusOfEveryKindOfQueue(t *testing.T) {
	s := newSite(t)
	s.exec(`insert into queues (queue, supervisor, n, c, host, pid, expires_at, paused_until, settings) values
		('held', 's', 1, 1, 'web', 7, now() + interval '20 s', 'infinity', '{"max_jobs_per_second": 2.5, "concurrency": 3}'),
		('late', 's', 1, 1, 'web', 8, 'infinity', '-infinity', '{}'),
		('past', 's', 1, 1, 'web', 9, now() - interval '1 s', now() - interval '1 h', '{}')`)
	s.exec(`insert into queues (queue) values ('released')`)
	s.exec(`insert into jobs (queue, name, state, run_at, finished_at) values
		('norow', 'Do', 'pending', now() - interval '1 h', null),
		('norow', 'Do', 'pending', 'infinity', null),
		('released', 'Do', 'pending', '-infinity', null),
		('released', 'Do', 'dead', now(), now()),
		('released', 'Do', 'done', now(), now()),
		('released', 'Do', 'done', now(), now() - interval '2 h')`)
	got, err := jobs.Schema("").Status(t.Context(), s.look)
	if err != nil {
		t.Fatal(err)
	}
	const ever = 100 * 24 * time.Hour
	want := []jobs.QueueStatus{
		{Queue: "held", Holder: "web/7", LeaseEnds: 20 * time.Second, PausedFor: ever, PauseHasNoEnd: true, MaxJobsPerSecond: 2.5,
			Concurrency: 3},
		{Queue: "late", Holder: "web/8", LeaseEnds: 24 * time.Hour},
		{Queue: "norow", Due: 1, Later: 1, OldestDue: time.Hour},
		{Queue: "past"},
		{Queue: "released", Due: 1, Dead: 1, DoneLastHour: 1, OldestDue: ever},
	}
	for i := range got {
		got[i].LeaseEnds, got[i].OldestDue = got[i].LeaseEnds.Round(time.Second), got[i].OldestDue.Round(time.Second)
	}
	same(t, "status", got, want)
}

// A child is shown as its holder's supervisor describes it, and where nobody holds the queue as the last one did.
func TestStatusTellsWhatTheSupervisorSaidOfTheChild(t *testing.T) {
	s := newSite(t)
	const said = `'web', 'restarting', 'why', 7, 3, 'exit status 3', now() - interval '50 s', 'queues.toml:3', now() - interval '10 s'`
	s.exec(`insert into queues (queue, supervisor, n, c, host, pid, expires_at, child_supervisor, child_host, child_state,
		child_detail, child_pid, restarts, last_exit, last_exit_at, failed_reload, seen_at) values
		('held', 's', 1, 1, 'web', 7, now() + interval '20 s', 's', ` + said + `),
		('other', 't', 1, 1, 'www', 8, now() + interval '20 s', 's', ` + said + `),
		('past', 't', 1, 1, 'www', 8, now() - interval '1 s', 's', ` + said + `),
		('free', null, null, null, null, null, '-infinity', 's', ` + said + `),
		('old', 's', 1, 1, 'web', 9, now() + interval '20 s', null, null, null, null, null, null, null, null, null, null)`)
	all, err := jobs.Schema("").Status(t.Context(), s.look)
	if err != nil {
		t.Fatal(err)
	}
	want := jobs.Child{State: "restarting", Detail: "why", PID: 7, Restarts: 3, LastExit: "exit status 3", ExitAgo: 50 * time.Second}
	for _, q := range all {
		q.Child.ExitAgo, q.SeenAgo = q.Child.ExitAgo.Round(10*time.Second), q.SeenAgo.Round(10*time.Second)
		got := []any{q.Child, q.ChildHost, q.FailedReload, q.SeenAgo}
		want.Queue = q.Queue
		if q.Queue == "other" || q.Queue == "old" {
			same(t, q.Queue, got, []any{jobs.Child{}, "", "", time.Duration(0)})
		} else {
			same(t, q.Queue, got, []any{want, "web", "queues.toml:3", 10 * time.Second})
		}
	}
	if len(all) != 5 {
		t.Errorf("queues = %d, want 5", len(all))
	}
}

// What a pause was is not told once it is over, and lanes that nothing says are paused are not looked for.
func TestStatusTellsOfPausesThatHold(t *testing.T) {
	s := newSite(t)
	s.exec(`insert into queues (queue, paused_until, pause_reason, lanes_paused_until) values
		('a', now() + interval '1 h', 'why', '-infinity'), ('b', now() - interval '1 s', 'past', 'infinity'),
		('c', '-infinity', null, 'infinity'), ('d', 'infinity', null, now() - interval '1 s')`)
	s.exec(`insert into lanes (queue, lane, paused_until, pause_reason) values
		('b', 'é', now() + interval '2 h', 'why'), ('b', 'Z', now() + interval '1 h', null), ('b', 'a', 'infinity', '"\'), ('b', '4', now(), 'over'),
		('c', E' \n', now() + interval '101 days', null), ('d', '1', now() + interval '1 h', null)`)
	all, err := jobs.Schema("").Status(t.Context(), s.look)
	finish(t, err)
	seconds := func(d time.Duration) time.Duration { return (d + time.Second/2).Truncate(time.Second) }
	var got []string
	for _, q := range all {
		text := fmt.Sprint(seconds(q.PausedFor), q.PauseHasNoEnd, " ", q.PauseReason, " ", q.LanesPaused)
		for _, l := range q.PausedLanes {
			if l.For >= 0 {
				l.For = seconds(l.For)
			}
			text += fmt.Sprintf(", %q %v %s", l.Lane, l.For, l.Reason)
		}
		got = append(got, text)
	}
	same(t, "pauses", got, []string{"1h0m0s false why 0", `0s false  3, "Z" 1h0m0s , "a" -1ns "\, "é" 2h0m0s why`,
		`0s false  1, " \n" 2400h0m0s `, "2400h0m0s true  0"})
}

func TestStatusNamesTheFirstOfThousandsOfPausedLanes(t *testing.T) {
	s := newSite(t)
	s.exec(`insert into queues (queue, lanes_paused_until) values ('q', 'infinity'), ('other', 'infinity')`)
	s.exec(`insert into lanes (queue, lane, paused_until) select 'q', i, 'infinity' from generate_series(10000, 19999) i`)
	s.exec(`insert into lanes (queue, lane, paused_until) select 'q', i, '-infinity' from generate_series(1000, 1999) i`)
	s.exec(`insert into lanes (queue, lane, paused_until) values ('other', '1', 'infinity')`)
	all, err := jobs.Schema("").Status(t.Context(), s.look)
	finish(t, err)
	q := all[1]
	if q.LanesPaused != 10000 || len(q.PausedLanes) != jobs.MaxPausedLanes {
		t.Fatalf("%d lanes paused, %d named; want 10000 and %d", q.LanesPaused, len(q.PausedLanes), jobs.MaxPausedLanes)
	}
	if first, last := q.PausedLanes[0].Lane, q.PausedLanes[99].Lane; first != "10000" || last != "10099" {
		t.Errorf("lanes named from %s to %s, want 10000 to 10099", first, last)
	}
}

// Only what was done, only in the last hour, only the newest thousand, and nothing that a raw INSERT has put there.
func TestStatusTellsHowLongJobsTake(t *testing.T) {
	s := newSite(t)
	s.exec(`
		insert into jobs (queue, name, state, started_at, finished_at)
		select queue, 'Do', state, now() - ago - took, now() - ago
		from (values
			('a', 'done', interval '1 min', interval '1 s'), ('a', 'done', interval '59 min', interval '2 s'),
			('a', 'done', interval '61 min', interval '1 h'), ('a', 'dead', interval '1 min', interval '1 h'),
			('a', 'done', interval '-1 min', interval '1 h'), ('b', 'dead', interval '1 min', interval '1 h'),
			('c', 'done', interval '1 min', interval '-1 h')) j (queue, state, ago, took)
		union all select 'a', 'Do', 'done', '-infinity', now() - interval '1 min'
		union all select 'a', 'Do', 'done', null, now() - interval '1 min'
		union all select 'a', 'Do', 'done', now(), 'infinity'
		union all select 'd', 'Do', 'done', now() - interval '2 min', now() - interval '1 min' from generate_series(1, 10)
		union all select 'd', 'Do', 'done', now() - interval '3 s', now() from generate_series(1, 1000)`)
	s.exec(`insert into queues (queue) values ('a'), ('c'), ('d')`)
	all, err := jobs.Schema("").Status(t.Context(), s.look)
	finish(t, err)
	got := map[string]time.Duration{}
	for _, q := range all {
		got[q.Queue] = q.MeanDuration
	}
	same(t, "mean durations", got, map[string]time.Duration{"a": 1500 * time.Millisecond, "b": 0, "c": 0, "d": 3 * time.Second})
}
