package cli_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"queuekeeper/internal/eventually"
)

// Reloads, restarts and jobs: each opens something, and closes it. A command gets none of it.
func TestNothingStaysOpen(t *testing.T) {
	t.Parallel()
	const hangups, kills, each = 10, 5, 10
	s := newSite(t, `
[[worker]]
queue = "github"
command = ["sh", "-c", "ls /proc/self/fd >seen-$JOB_ID"]
[[worker]]
queue = "slack"
command = ["true"]
`)
	p := s.run(dividedEnv + "=100")
	some := func() (github, slack int) {
		s.exec(`insert into jobs (queue, name) select q, 'Sync' from unnest(array['github', 'slack']) q, generate_series(1, $1)`, each)
		s.allDone()
		return p.ready("github"), p.ready("slack")
	}
	github, slack := some()
	files := map[string]int{"supervisor": openFiles(t, p.cmd.Process.Pid), "github": openFiles(t, github), "slack": openFiles(t, slack)}
	for range kills {
		kill(t, github)
		s.until(`select pid <> $1 from queues where queue = 'github'`, github)
		for range hangups / kills {
			p.more(`file taken on`, func() { p.signal(syscall.SIGHUP) })
		}
		github, _ = some()
	}
	for name, pid := range map[string]int{"supervisor": p.cmd.Process.Pid, "github": github, "slack": slack} {
		eventually.OK(t, patience, func() error {
			if got := openFiles(t, pid); got < files[name]-2 || got > files[name]+2 {
				return fmt.Errorf("open files of %s: got %d, want %d as before", name, got, files[name])
			}
			return nil
		})
	}
	for _, id := range values[int64](s, `select id from jobs where queue = 'github'`) {
		if got, want := s.read(fmt.Sprint("seen-", id)), "0\n1\n2\n3\n"; got != want { // 3: the folder ls reads
			t.Errorf("descriptors of the command of job %d: got %q, want %q", id, got, want)
		}
	}
	p.stop()
	s.cleanEnd(fmt.Sprintf("%d done", 2*each*(kills+1)))
}

// Ten queues whose children print a line and are gone: each line, each start and each end is of the process and the
// queue that it says, and none is lost.
func TestEveryShortLifeIsAccountedFor(t *testing.T) {
	t.Parallel()
	const queues, lives = 10, 4
	file := ""
	for n := range queues {
		file += fmt.Sprintf("[[worker]]\nqueue = \"q%d\"\ncommand = [\"true\"]\n", n)
	}
	s := newSite(t, file)
	for n := range queues {
		s.write(fmt.Sprint("exit-q", n), fmt.Sprint(n%2))
	}
	p := s.run(dividedEnv+"=100", "GOMAXPROCS=1")
	for n := range queues {
		p.logs(fmt.Sprintf(`child died: queue=q%d pid=\d+ n=%d `, n, lives))
		s.remove(fmt.Sprint("exit-q", n))
	}
	s.exec(`insert into jobs (queue, name) select 'q' || n, 'Sync' from generate_series(0, $1) n`, queues-1)
	s.allDone()
	p.stop()
	log := p.log()
	started := regexp.MustCompile(`child started: queue=q(\d) pid=(\d+) n=(\d+)`).FindAllStringSubmatch(log, -1)
	of := map[string]int{}
	for _, m := range started {
		queue, pid, n := m[1], m[2], m[3]
		if of[queue]++; n != strconv.Itoa(of[queue]) {
			t.Errorf("process %s of q%s: got number %s, want %d", pid, queue, n, of[queue])
		}
		end := fmt.Sprintf("child died: queue=q%s pid=%s n=%s cause=\"exit status %s\"", queue, pid, n, oddOrEven(queue))
		line := fmt.Sprintf("short life: queue=q%s pid=%s\n", queue, pid)
		if got := strings.Count(log, end); got != strings.Count(log, line) || got > 1 {
			t.Errorf("process %s of q%s: got %d ends %q and %d lines %q, want one of each, or none if it lived", pid, queue, got, end, strings.Count(log, line), line)
		}
	}
	if got := strings.Count(log, "short life: "); got < queues*lives || got != len(started)-queues {
		t.Errorf("short lives: got %d of %d processes, want all but %d, and at least %d", got, len(started), queues, queues*lives)
	}
	if strings.Contains(log, "panic") {
		t.Error("log: got a panic in it, want none")
	}
	s.cleanEnd("10 done")
}

func oddOrEven(queue string) string { n, _ := strconv.Atoi(queue); return strconv.Itoa(n % 2) }
