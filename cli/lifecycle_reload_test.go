package cli_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"queuekeeper/internal/testdb"
)

// said is a file of two queues. The jobs of one write a word when they begin and, once they are let, when they end.
func said(word string) string {
	return `
[[worker]]
queue = "github"
command = ["sh", "-c", "echo ` + word + ` begins >>ran; ` + untilLet + `; echo ` + word + ` ends >>ran"]
[[worker]]
queue = "slack"
command = ["true"]
`
}

func TestChangedCommandReplacesOnlyItsChildAfterItsJob(t *testing.T) {
	t.Parallel()
	s := newSite(t, said("old"))
	p := s.run()
	github, slack := p.ready("github"), p.ready("slack")
	s.insert("github", "Sync")
	s.running("sh -c echo old begins")
	s.insert("github", "Sync")
	p.reload(said("new"))
	p.logs(draining)
	s.let()
	s.allDone()
	if got, want := s.read("ran"), "old begins\nold ends\nnew begins\nnew ends\n"; got != want {
		t.Errorf("commands: got %q, want %q", got, want)
	}
	if got := value[int](s, `select max(attempts) from jobs`); got != 1 {
		t.Errorf("attempts of a job: got up to %d, want 1", got)
	}
	if now := p.ready("github"); now == github {
		t.Errorf("child of github: got process %d still, want another", now)
	}
	if now := p.ready("slack"); now != slack {
		t.Errorf("child of slack: got process %d, want still %d", now, slack)
	}
	p.stop()
	s.cleanEnd("2 done")
}

func TestReloadReleasesARemovedQueueAndStartsAnAddedOne(t *testing.T) {
	t.Parallel()
	s := newSite(t, twoQueues)
	p := s.run()
	github := p.ready("github")
	slack := p.ready("slack")
	p.reload(strings.ReplaceAll(twoQueues, "slack", "mail"))
	p.ready("mail")
	s.until(`select supervisor is null from queues where queue = 'slack'`)
	p.logs(fmt.Sprintf(`child ended: queue=slack pid=%d .*cause="exit status 0"`, slack))
	for _, queue := range []string{"github", "mail", "slack"} {
		s.insert(queue, "Post")
	}
	s.until(`select count(*) = 2 from jobs where state = 'done'`)
	if now := p.ready("github"); now != github {
		t.Errorf("child of github: got process %d, want still %d", now, github)
	}
	p.stop()
	s.cleanEnd("2 done, 1 pending")
}

// What is wrong with a file is told, and everything goes on as if nobody had asked.
func TestFaultyFileChangesNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t, twoQueues)
	p := s.run()
	github, slack := p.ready("github"), p.ready("slack")
	for _, fault := range []struct{ file, want string }{
		{twoQueues + "max_jobs_per_second = 0\n", `queues.toml:8: worker.slack.max_jobs_per_second`},
		{twoQueues + "[[worker]]\n", `worker`},
		{twoQueues[:len(twoQueues)/2] + "[[wor", `queues.toml:`},
		{"", `queues.toml`},
		{strings.ReplaceAll(twoQueues, "slack", "github"), `which has a worker already`},
		{twoQueues + "[[worker]]\nqueue = \"mail\"\n", `mail`},
		{`database_url = "postgres://nobody@127.0.0.1:1/none"` + twoQueues, `tried in vain`},
		{missing, `no such file`},
	} {
		s.replaceFile(fault.file)
		line := p.more(`\[ERROR\] file not taken on, everything stays as it is; mend it and send HUP: .*`, func() { p.signal(syscall.SIGHUP) })
		if !strings.Contains(line, fault.want) {
			t.Errorf("file %q: got %q, want %q in it", fault.file, line, fault.want)
		}
		s.insert("github", "Sync")
		s.insert("slack", "Post")
		s.allDone()
	}
	if status := p.more(`status: .*`, func() { p.signal(syscall.SIGUSR1) }); !strings.Contains(status, "reload failed: ") {
		t.Errorf("status: got %q, want that the reload failed", status)
	}
	p.reload(twoQueues)
	if status := p.more(`status: .*`, func() { p.signal(syscall.SIGUSR1) }); strings.Contains(status, "reload failed: ") {
		t.Errorf("status after a sound file: got %q, want nothing of a reload that failed", status)
	}
	if now := []int{p.ready("github"), p.ready("slack")}; !slices.Equal(now, []int{github, slack}) {
		t.Errorf("children: got processes %v, want still %d and %d", now, github, slack)
	}
	p.stop()
	s.cleanEnd("16 done")
}

const missing = "missing"

func (s *site) replaceFile(text string) {
	s.t.Helper()
	if text != missing {
		s.write("queues.toml", text)
		return
	}
	if err := os.Remove(s.path("queues.toml")); err != nil {
		s.t.Fatal(err)
	}
}

// The old database gets everything back, the new one is worked on.
func TestReloadMovesToAnotherDatabase(t *testing.T) {
	t.Parallel()
	s := newSite(t, twoQueues)
	p := s.run()
	p.ready("github")
	p.ready("slack")
	other := siteAt(t, testdb.New(t), twoQueues)
	p.reload(fmt.Sprintf("database_url = %q\n", other.url) + twoQueues)
	s.until(`select bool_and(supervisor is null) from queues`)
	moved := &process{other, p.cmd, p.out}
	moved.ready("github")
	moved.ready("slack")
	for _, queue := range []string{"github", "slack"} {
		s.insert(queue, "Sync")
		other.insert(queue, "Sync")
	}
	other.allDone()
	p.stop()
	s.cleanEnd("2 pending")
	other.cleanEnd("2 done")
}

// The first part is as sound as the whole. Whoever took it at its word would end a queue.
func TestHalfWrittenFileIsTakenAsAWhole(t *testing.T) {
	t.Parallel()
	s := newSite(t, twoQueues)
	p := s.run()
	p.ready("github")
	var line string
	took := time.Hour
	for tries := 0; took > 80*time.Millisecond; tries++ { // after 100 ms a part may count as the whole
		if tries == 20 {
			t.Skip("this machine is too busy to write a file within 80 ms")
		}
		p.reload(twoQueues)
		p.ready("slack")
		line, took = p.reloadInParts(twoQueues[:strings.LastIndex(twoQueues, "[[worker]]")], twoQueues+"concurrency = 2\n")
	}
	if want := "added=0 replaced=1 limits=0 removed=0 unchanged=1"; !strings.Contains(line, want) {
		t.Errorf("reload: got %q, want %s", line, want)
	}
	p.stop()
	s.cleanEnd("")
}

// reloadInParts asks for the reload of a file when only its first part is written, and says how soon the rest
// followed.
func (p *process) reloadInParts(part, whole string) (line string, took time.Duration) {
	p.s.t.Helper()
	line = p.more(`file taken on: .*`, func() {
		begin := time.Now()
		p.s.write("queues.toml", part)
		p.signal(syscall.SIGHUP)
		time.Sleep(50 * time.Millisecond) // part of the script
		p.s.write("queues.toml", whole)
		took = time.Since(begin)
	})
	return line, took
}

// Half of the storm comes while a reload is under way: one more follows, not a thousand. The TERM behind it is not
// lost in it.
func TestStormOfHangupsThenTermEndsInOrder(t *testing.T) {
	t.Parallel()
	s, p := inHand(t, "25s")
	for range 1000 {
		p.signal(syscall.SIGHUP)
	}
	p.signal(syscall.SIGTERM)
	p.logs(draining)
	s.let()
	p.exits(0)
	for _, queue := range []string{"github", "slack"} {
		if got := p.children(queue); got != 1 {
			t.Errorf("processes of %s: got %d, want 1", queue, got)
		}
	}
	s.cleanEnd("1 done")
}

func TestHangupWhileEndingCallsNothingOff(t *testing.T) {
	t.Parallel()
	s, p := inHand(t, "25s")
	p.signal(syscall.SIGTERM)
	p.logs(`children told to leave`)
	p.signal(syscall.SIGHUP)
	p.logs(`already ending: hangup ignored`)
	s.let()
	p.exits(0)
	s.cleanEnd("1 done")
}

// What it lacked may be there by now.
func TestReloadStartsAParkedQueueAgain(t *testing.T) {
	t.Parallel()
	file := strings.Replace(twoQueues, `["true"]`, `["./sync.sh"]`, 1)
	s := newSite(t, file)
	s.insert("github", "Sync")
	p := s.run()
	slack := p.ready("slack")
	p.logs(`\[ERROR\] queue parked: .*queue=github .*sync.sh`)
	s.script("sync.sh", "true")
	p.reload(file)
	s.allDone()
	if now := p.ready("slack"); now != slack {
		t.Errorf("child of slack: got process %d, want still %d", now, slack)
	}
	p.stop()
	s.cleanEnd("1 done")
}
