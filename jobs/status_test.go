package jobs_test

import (
	"testing"
	"time"

	"queuekeeper/jobs"
)

// A queue is released, or never held, paused for ever or not at all, with jobs of every state or none: what is
// infinite or missing in its row must not stop the answer for the others.
func TestStatusOfEveryKindOfQueue(t *testing.T) {
	s := newSite(t)
	s.exec(`insert into queues (queue, supervisor, n, c, host, pid, expires_at, paused_until, settings) values
		('held', 's', 1, 1, 'web', 7, now() + interval '20 s', 'infinity', '{"max_jobs_per_second": 2.5}'),
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
		{Queue: "held", Holder: "web/7", LeaseEnds: 20 * time.Second, PausedFor: ever, MaxJobsPerSecond: 2.5},
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
