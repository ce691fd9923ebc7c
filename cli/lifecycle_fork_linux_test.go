package cli_test

import (
	"testing"

	"golang.org/x/sys/unix"
)

// The machine lets the supervisor open nothing more: no pipe, so no child. The others work on, and the queue is back
// once there is room again.
func TestChildThatCannotBeStartedIsTriedAgain(t *testing.T) {
	t.Parallel()
	s := newSite(t, twoQueues)
	p := s.run()
	github, slack := p.ready("github"), p.ready("slack")
	restore := limitFiles(t, p.cmd.Process.Pid, 3)
	kill(t, github)
	p.logs(`\[ERROR\] child not started: queue=github n=2 error=".*too many open files" again_in=\d`)
	s.insert("slack", "Post")
	s.insert("github", "Sync")
	s.until(`select state = 'done' from jobs where queue = 'slack'`)
	restore()
	s.allDone()
	p.ready("github")
	if now := p.ready("slack"); now != slack {
		t.Errorf("child of slack: got process %d, want still %d", now, slack)
	}
	p.stop()
	s.cleanEnd("2 done")
}

// limitFiles keeps a process from opening more files than so many, and returns what takes that back.
func limitFiles(t *testing.T, pid int, files uint64) (restore func()) {
	t.Helper()
	set := func(to, was *unix.Rlimit) {
		t.Helper()
		if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, to, was); err != nil {
			t.Fatal(err)
		}
	}
	var before unix.Rlimit
	set(nil, &before)
	set(&unix.Rlimit{Cur: files, Max: before.Max}, nil)
	return func() { t.Helper(); set(&before, nil) }
}
