package cli_test

import (
	"strings"
	"syscall"
	"testing"
)

// UN01: what a dead process left running comes back in one pass, keys or not. Two live rows with one key exist
// only where somebody has dropped the index; even those hinder nobody.
func TestStaleJobsWithUniqueKeysComeBackInOnePass(t *testing.T) {
	s := newSite(t, `
[[worker]]
queue = "github"
concurrency = 10
command = ["true"]
`)
	s.exec(`drop index jobs_unique_key`)
	s.exec(`
insert into jobs (queue, name, state, epoch, attempts, unique_key)
values ('github', 'Sync', 'running', 7, 1, 'k1'), ('github', 'Sync', 'running', 7, 1, 'k2'),
	('github', 'Sync', 'running', 7, 1, null), ('github', 'Sync', 'running', 7, 1, null), ('github', 'Sync', 'running', 7, 1, null)`)
	s.exec(`
insert into jobs (queue, name, unique_key)
values ('github', 'Sync', 'k1'), ('github', 'Sync', 'k1'), ('github', 'Sync', 'k3')`)
	p := s.run()
	s.allDone()
	if n := strings.Count(p.log(), "job recovered"); n != 5 {
		t.Errorf("jobs recovered: got %d, want 5", n)
	}
	if log := p.log(); strings.Contains(log, "23505") {
		t.Errorf("log: got a unique violation, want none:\n%s", log)
	}
	p.stop()
	s.cleanEnd("8 done")
}

// UN02: a job that waits to retry still holds its key, and gets it done.
func TestKeyOfAJobThatWaitsToRetryIsHeld(t *testing.T) {
	t.Parallel()
	s := newSite(t, `
[[worker]]
queue = "github"
poll_interval = "100ms"
command = ["sh", "-c", "test $JOB_ATTEMPT = 2"]
[[worker]]
queue = "slack"
command = ["true"]
`)
	p := s.start(s.command([]string{"run"})) // its back-off of a second leaves time to look
	first := strings.TrimSpace(s.does(nil, "enqueue", "github", "Sync", "--unique-key", "k"))
	s.until(`select attempts = 1 and state = 'pending' from jobs`)
	s.exec(`update jobs set run_at = now() + interval '1 h'`)
	s.exec(`insert into jobs (queue, name) select 'slack', 'Post' from generate_series(1, 20)`)
	told := s.does(nil, "enqueue", "github", "Sync", "--unique-key", "k")
	if want := "nothing stored: job " + first; !strings.HasPrefix(told, want) {
		t.Errorf("enqueue of a held key: got %q, want %q...", told, want)
	}
	s.exec(`update jobs set run_at = now() where state = 'pending' and queue = 'github'`)
	s.allDone()
	p.stop()
	s.cleanEnd("21 done")
}

// UN07: later, after a failure, after a shutdown: a key changes nothing about its job being done.
func TestUniqueJobsAreDone(t *testing.T) {
	t.Parallel()
	s := newSite(t, `
shutdown_timeout = "1s"
[[worker]]
queue = "go"
[[worker]]
queue = "sh"
command = ["sh", "-c", "test $JOB_ATTEMPT != 1 || sleep 30"]
`)
	first := s.run()
	first.ready("go")
	s.does(nil, "enqueue", "go", "Mark", "--unique-key", "later", "--in", "2s")
	s.does(nil, "enqueue", "go", "Once", "--unique-key", "once")
	s.does(nil, "enqueue", "sh", "Sync", "--unique-key", "interrupted")
	s.running("sleep 30")
	first.signal(syscall.SIGTERM)
	first.exits(0)
	second := s.run()
	s.allDone()
	got := strings.Join(values[string](s, `select unique_key || ' ' || attempts || ' ' || excused from jobs order by id`), ", ")
	if want := "later 1 0, once 2 0, interrupted 2 1"; got != want {
		t.Errorf("key, attempts, excused: got %s, want %s", got, want)
	}
	second.stop()
	s.cleanEnd("3 done")
}
