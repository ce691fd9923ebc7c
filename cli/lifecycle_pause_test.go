package cli_test

import (
	"strings"
	"syscall"
	"testing"
)

// Nothing but what the commands say can wake these queues in time.
const pausable = `
[defaults]
poll_interval = "1h"
command = ["true"]
[[worker]]
queue = "github"
[[worker]]
queue = "slack"
concurrency = 2
`

// insertIn enqueues into a lane.
func (s *site) insertIn(queue, lane string) int64 {
	s.t.Helper()
	return value[int64](s, `insert into jobs (queue, name, lane) values ($1, 'Do', $2) returning id`, queue, lane)
}

func (s *site) done(id int64) {
	s.t.Helper()
	s.until(`select state = 'done' from jobs where id = $1`, id)
}

func (s *site) untouched(id int64) {
	s.t.Helper()
	if !value[bool](s, `select state = 'pending' and attempts = 0 from jobs where id = $1`, id) {
		s.t.Errorf("job %d: got a start, want it to wait; jobs are\n%s", id, s.jobs())
	}
}

// The child hears of both at once, a new child and a new supervisor find the pause, and the other queue notices nothing.
func TestAQueueIsPausedAndResumedWhileItRuns(t *testing.T) {
	t.Parallel()
	s := newSite(t, pausable)
	p := s.run()
	p.ready("slack")
	child := p.ready("github")
	s.done(s.insert("github", "Do"))

	if out := s.does(nil, "pause", "github", "--reason", "maintenance"); out != "queue github: paused until resumed: maintenance\n" {
		t.Errorf("pause: got %q", out)
	}
	waits := s.insert("github", "Do")
	s.done(s.insert("slack", "Do"))
	s.shows(`^github .*, paused$`, `^github: paused until resumed: maintenance$`)
	kill(t, child)
	s.until(`select n > 1 and holder is not null from queues where queue = 'github'`)
	s.done(s.insert("slack", "Do"))
	s.untouched(waits)
	p.stop()
	p = s.run()
	p.ready("github")
	s.done(s.insert("slack", "Do"))
	s.untouched(waits)

	if out := s.does(nil, "resume", "github"); out != "queue github: resumed; it was paused until resumed: maintenance\n" {
		t.Errorf("resume: got %q", out)
	}
	s.done(waits)
	p.stop()
	s.cleanEnd("5 done")
}

// The other lanes go on, those with a lane name that needs care too.
func TestALaneIsPausedAndResumedWhileItsQueueRuns(t *testing.T) {
	t.Parallel()
	const lane = "Ärger & Söhne 100%"
	s := newSite(t, pausable)
	p := s.run()
	p.ready("slack")
	s.done(s.insertIn("slack", lane))
	s.does(nil, "pause", "slack", "--lane", lane, "--for", "1h")
	waits := s.insertIn("slack", lane)
	s.done(s.insertIn("slack", "b"))
	s.done(s.insertIn("slack", strings.ToUpper(lane)))
	s.untouched(waits)
	s.does(nil, "resume", "slack", "--lane", lane)
	s.done(waits)

	// With resume of the queue, the lanes go on too.
	s.does(nil, "pause", "slack", "--lane", lane)
	s.does(nil, "pause", "slack", "--for", "1h")
	waits = s.insertIn("slack", lane)
	other := s.insertIn("slack", "b")
	p.signal(syscall.SIGHUP) // whatever else happens meanwhile
	p.logs(`file taken on|nothing has changed`)
	s.untouched(waits)
	s.untouched(other)
	s.does(nil, "resume", "slack")
	s.done(waits)
	s.done(other)
	p.stop()
	s.cleanEnd("6 done")
}
