package cli_test

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// exclusive is a command that tells if another of its queue runs at the same time: that one has the lock.
const exclusive = `["sh", "-c", "flock -n -E 9 lock-$JOB_QUEUE sleep 0.4; test $? != 9 || echo $JOB_QUEUE $JOB_ID >>overlaps"]`

// Nobody reads the log either.
func TestStormOfHangupsAndKillsEndsInOrder(t *testing.T) {
	t.Parallel()
	const rounds, hangups, seed, grace = 3, 20, 3, 5 * time.Second
	random := rand.New(rand.NewPCG(seed, 0))
	s := newSite(t, `
shutdown_timeout = "5s"
[defaults]
command = `+exclusive+`
[[worker]]
queue = "github"
[[worker]]
queue = "mail"
[[worker]]
queue = "slack"
`)
	queues := []string{"github", "mail", "slack"}
	for round := range rounds {
		s.exec(`insert into jobs (queue, name) select q, 'Sync' from unnest($1::text[]) q, generate_series(1, 4)`, queues)
		cmd := s.command([]string{"run"}, dividedEnv+"=10")
		fullPipe(t, cmd)
		p := s.start(cmd)
		children := []int{p.ready("github"), p.ready("mail"), p.ready("slack")}
		kills := map[int]int{random.IntN(hangups): random.IntN(3), random.IntN(hangups): random.IntN(3)}
		for i := range hangups {
			p.signal(syscall.SIGHUP)
			if which, now := kills[i]; now {
				_ = syscall.Kill(children[which], syscall.SIGKILL) // it may be the same one again
			}
			time.Sleep(50 * time.Millisecond) // part of the script
		}
		p.signal(syscall.SIGTERM)
		if took := p.exits(0, 1); took > grace {
			t.Errorf("round %d of seed %d: from TERM to the end: got %v, want within shutdown_timeout of %v", round, seed, took, grace)
		}
		s.gone("")
	}
	p := s.run()
	s.allDone()
	for _, queue := range queues {
		p.ready(queue)
	}
	p.stop()
	if got := s.read("overlaps"); got != "" {
		t.Errorf("jobs of one queue at the same time: got %q, want none", got)
	}
	s.cleanEnd("36 done")
}

// The one whose command is gone is parked, the one whose process dies at its start is started again and again, and
// the third notices nothing. Mended, both work.
func TestReloadThatBreaksTwoQueuesTouchesNoOther(t *testing.T) {
	t.Parallel()
	s := newSite(t, twoQueues)
	p := s.run()
	github := p.ready("github")
	p.ready("slack")
	s.write("exit-mail", "1")
	const mail = "[[worker]]\nqueue = \"mail\"\ncommand = [\"true\"]\n"
	i := strings.LastIndex(twoQueues, `"true"`)
	p.reload(twoQueues[:i] + `"no-such-program"` + twoQueues[i+len(`"true"`):] + mail)
	p.logs(`\[ERROR\] queue parked: .*queue=slack .*no-such-program`)
	for n := 1; n <= 3; n++ {
		p.logs(fmt.Sprintf(`child died: queue=mail pid=\d+ n=%d cause="exit status 1"`, n))
	}
	for _, queue := range []string{"github", "mail", "slack"} {
		s.insert(queue, "Sync")
	}
	s.until(`select state = 'done' from jobs where queue = 'github'`)
	if got := value[int](s, `select sum(attempts)::int from jobs where queue <> 'github'`); got != 0 {
		t.Errorf("attempts of the two broken queues: got %d, want 0", got)
	}
	s.remove("exit-mail")
	p.reload(twoQueues + mail)
	s.allDone()
	p.workEach("github", "mail", "slack")
	if now := p.ready("github"); now != github {
		t.Errorf("child of github: got process %d, want still %d", now, github)
	}
	p.stop()
	s.cleanEnd("3 done")
}

// They are busy, and each learns of it by itself. Whoever starts meanwhile waits for what they still do.
func TestChildrenOfAKilledSupervisorNoticeAtOnce(t *testing.T) {
	t.Parallel()
	queues := []string{"github", "mail", "slack"}
	s := newSite(t, `
[defaults]
command = ["sleep", "1.2"]
[[worker]]
queue = "github"
[[worker]]
queue = "mail"
[[worker]]
queue = "slack"
`)
	first := s.run()
	for _, queue := range queues {
		first.ready(queue)
		s.insert(queue, "Sync")
		s.insert(queue, "Sync")
	}
	s.until(`select count(*) = 3 from jobs where state = 'running'`)
	killed := time.Now()
	kill(t, first.cmd.Process.Pid)
	first.exits(-1)
	second := s.run()
	s.allDone()
	noticed := first.times(`the supervisor is gone; leaving`)
	if len(noticed) != len(queues) {
		t.Fatalf("children that noticed: got %d, want %d", len(noticed), len(queues))
	}
	if took := noticed[len(queues)-1].Sub(killed); took > time.Second+scheduling {
		t.Errorf("from kill -9 of the supervisor to the last child that notices: got %v, want at most 1s", took)
	}
	if got := strings.Count(first.log(), "status=done"); got != len(queues) {
		t.Errorf("jobs done without a supervisor: got %d, want the %d that were begun", got, len(queues))
	}
	if got := value[int](s, `select max(attempts) from jobs`); got != 1 {
		t.Errorf("attempts of a job: got up to %d, want 1", got)
	}
	second.stop()
	s.cleanEnd("6 done")
}

// Whatever a child dies of there is another, and when none of them can get into the database the supervisor stays for
// the day they can.
func TestKilledChildrenAreReplacedAndOutlastALockedDoor(t *testing.T) {
	t.Parallel()
	queues := []string{"github", "mail", "slack"}
	s := newSite(t, twoQueues+"[[worker]]\nqueue = \"mail\"\ncommand = [\"true\"]\n")
	app := s.asApp()
	p := s.run()
	before := map[string]int{}
	for _, queue := range queues {
		before[queue] = p.ready(queue)
	}
	send(t, syscall.SIGKILL, before["github"])
	send(t, syscall.SIGSEGV, before["slack"])
	s.until(`select bool_and(n = 2) from queues where queue <> 'mail'`)
	if now := p.ready("mail"); now != before["mail"] {
		t.Errorf("child of mail: got process %d, want still %d", now, before["mail"])
	}
	s.exec(`alter role ` + app + ` nologin`)
	for _, queue := range queues {
		kill(t, p.ready(queue))
		p.logs(`waiting for the database: queue=` + queue + ` .*not permitted to log in`)
		s.insert(queue, "Sync")
	}
	if got := value[int](s, `select sum(attempts)::int from jobs`); got != 0 {
		t.Errorf("attempts while nobody may log in: got %d, want 0", got)
	}
	s.exec(`alter role ` + app + ` login`)
	s.allDone()
	p.workEach(queues...)
	p.stop()
	s.cleanEnd("3 done")
}

// A number says nothing about who holds a queue: another process may have got it. And who really holds one is told
// to whoever comes second, with how long.
func TestStrangerWithTheHoldersNumberHoldsNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t, `lease = "30s"`+twoQueues)
	first := s.run()
	all := []int{first.cmd.Process.Pid, first.ready("github"), first.ready("slack")}
	send(t, syscall.SIGSTOP, all...) // first: nobody sees the others die and still does something about it
	send(t, syscall.SIGKILL, all...)
	first.exits(-1)
	stranger := exec.Command("sleep", "300")
	if err := stranger.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- stranger.Wait() }()
	s.exec(`update queues set pid = $1`, stranger.Process.Pid)

	begin := time.Now()
	second := s.run()
	holders := map[string]int{"github": second.ready("github"), "slack": second.ready("slack")}
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("take-over: got %v, want seconds, not the lease of 30s", took)
	}
	select {
	case err := <-ended:
		t.Fatalf("process that only had the number: got it ended with %v, want it alive", err)
	default:
	}
	_ = stranger.Process.Kill()
	<-ended

	third := s.run()
	for queue, pid := range holders {
		told := third.logs(`standing by: queue=` + queue + ` .*`)
		if !regexp.MustCompile(fmt.Sprintf(` holder=\S+/%d lease_ends_in=[23]\ds$`, pid)).MatchString(told) {
			t.Errorf("third supervisor: got %q, want the holder, process %d, and 30s or a little less", told, pid)
		}
	}
	third.stop()
	second.stop()
	s.cleanEnd("")
}

// A queue that cannot live, reloads without end, and somebody at the command line: the supervisor outlives all of it
// and knows in the end how each queue is.
func TestReloadsAndCommandsBesideACrashLoop(t *testing.T) {
	t.Parallel()
	const acts, seed = 20, 5
	random := rand.New(rand.NewPCG(seed, 0))
	s := newSite(t, twoQueues)
	s.write("exit-github", "3")
	s.exec(`insert into jobs (queue, name, state, attempts) select 'slack', 'Post', 'dead', 1 from generate_series(1, $1)`, acts)
	p := s.run()
	slack := p.ready("slack")
	for id := 1; id <= acts; id++ {
		switch random.IntN(4) {
		case 0:
			s.status()
		case 1:
			s.does(nil, "jobs", "requeue", fmt.Sprint(id))
		default:
			p.signal(syscall.SIGHUP)
		}
	}
	p.logs(`child died: queue=github .* n=4 cause="exit status 3"`)
	s.remove("exit-github")
	s.insert("github", "Sync")
	s.until(`select bool_and(state in ('done', 'dead')) from jobs`)
	p.workEach("github", "slack")
	if now := p.ready("slack"); now != slack {
		t.Errorf("child of slack: got process %d, want still %d", now, slack)
	}
	requeued := value[int](s, `select count(*) from jobs where queue = 'slack' and state = 'done'`)
	p.stop()
	s.cleanEnd(fmt.Sprintf("%d dead, %d done", acts-requeued, requeued+1))
}
