package cli_test

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// Whoever stops the job takes the blame; whoever kills it cannot be told from the job itself.
func TestTermGivesTheOnlyAttemptBackAndAKillSpendsIt(t *testing.T) {
	t.Parallel()
	s := newSite(t, `
shutdown_timeout = "1s"
[[worker]]
queue = "github"
max_attempts = 1
command = ["sleep", "60"]
`)
	s.insert("github", "Sync")
	first := s.run()
	s.running("sleep 60")
	first.signal(syscall.SIGTERM)
	first.exits(0)
	s.excused()
	s.cleanEnd("1 pending")

	second := s.run()
	s.running("sleep 60")
	kill(t, second.ready("github"))
	s.until(`select state = 'dead' from jobs`)
	got := value[string](s, `select format('%s %s %s', attempts, excused, last_error) from jobs`)
	if want := "2 1 child killed by signal 9"; got != want {
		t.Errorf("attempts, excused, last_error: got %q, want %q", got, want)
	}
	second.stop()
	s.cleanEnd("1 dead")
}

// Neither the end of its process nor the next child makes it anything but dead, and the operator is told whether it
// was still at work.
func TestCancelledJobThatKillsItsProcessStaysDead(t *testing.T) {
	t.Parallel()
	for moment, c := range map[string]struct{ name, until, told string }{
		"while it runs":     {"KillWhenLet", `select state = 'running' from jobs`, "job 1: cancelled; it was still executing\n"},
		"between two lives": {"KillSelf", `select attempts = 1 and state = 'pending' from jobs`, "job 1: cancelled\n"},
	} {
		t.Run(moment, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, goQueue)
			s.exec(`insert into jobs (queue, name, max_attempts) values ('go', $1, 1000)`, c.name)
			p := s.start(s.command([]string{"run"})) // at the times of a real run it waits a second for its next life
			p.ready("go")
			s.until(c.until)
			s.exec(`update jobs set run_at = now() + interval '1 h' where state = 'pending'`) // and now as long as it takes
			if got := s.does(nil, "jobs", "cancel", "1"); got != c.told {
				t.Errorf("cancel: got %q, want %q", got, c.told)
			}
			s.write("let", "")
			if c.name == "KillWhenLet" {
				p.logs(`child died: queue=go .* n=1 cause="child killed by signal 9"`)
			}
			s.exec(`update jobs set run_at = now()`)
			p.ready("go")
			s.insert("go", "Mark")
			s.until(`select state = 'done' from jobs where name = 'Mark'`)
			got := value[string](s, `select concat_ws(' ', state, attempts, last_error) from jobs where id = 1`)
			if want := "dead 1 cancelled"; got != want {
				t.Errorf("state, attempts, last_error: got %q, want %q", got, want)
			}
			if got := len(s.marks(c.name)); got != 1 {
				t.Errorf("starts: got %d, want the one before it was cancelled", got)
			}
			p.stop()
			s.cleanEnd("1 dead, 1 done")
		})
	}
}

// The first attempt of the new life fails as well, and is not its last.
func TestRequeuedJobHasARealRunAndItsRetries(t *testing.T) {
	t.Parallel()
	s := newSite(t, `
[[worker]]
queue = "github"
command = ["sh", "-c", "until test -e go-$JOB_ATTEMPT; do sleep 0.02; done; test $JOB_ATTEMPT = 5"]
`)
	s.exec(`
insert into jobs (queue, name, state, attempts, max_attempts, finished_at, last_error)
values ('github', 'Sync', 'dead', 3, 3, now(), 'the error of its last life')`)
	p := s.run()
	p.ready("github")
	if got, want := s.does(nil, "jobs", "requeue", "1"), "job 1: requeued\n"; got != want {
		t.Errorf("requeue: got %q, want %q", got, want)
	}
	s.until(`select state = 'running' and attempts = 4 from jobs`)
	s.refused("job 1: skipped: it is running", "jobs", "requeue", "1")
	if got, want := value[string](s, `select last_error from jobs`), "the error of its last life"; got != want {
		t.Errorf("last_error while it runs: got %q, want %q", got, want)
	}
	s.write("go-4", "")
	s.until(`select state = 'running' and attempts = 5 from jobs`)
	if got, want := value[string](s, `select last_error from jobs`), "exit status 1"; got != want {
		t.Errorf("last_error after the first attempt of its new life: got %q, want %q", got, want)
	}
	s.write("go-5", "")
	s.allDone()
	s.refused("job 1: skipped: it is done", "jobs", "requeue", "1")
	s.refused("job 999999: skipped: no such job", "jobs", "requeue", "999999")
	got := value[string](s, `select concat_ws(' ', attempts, excused, requeues) from jobs`)
	if want := "5 3 1"; got != want {
		t.Errorf("attempts, excused, requeues: got %s, want %s", got, want)
	}
	p.stop()
	s.cleanEnd("1 done")
}

// Each queue has a handler of the same name.
func TestRetriesStayInTheirQueue(t *testing.T) {
	t.Parallel()
	s := newSite(t, `
[[worker]]
queue = "alpha"
[[worker]]
queue = "beta"
`)
	s.exec(`
insert into jobs (queue, name, max_attempts)
values ('alpha', 'Same', null), ('beta', 'Same', null), ('alpha', 'Same', 2), ('beta', 'Same', 2), ('alpha', 'Same', null)`)
	p := s.run()
	alpha, beta := p.ready("alpha"), p.ready("beta")
	s.until(`select not bool_or(state in ('pending', 'running')) from jobs`)
	ran := map[string]int{}
	for line := range strings.Lines(s.read("same")) {
		ran[strings.TrimSpace(line)]++
	}
	// Two of alpha's succeed at their third attempt, one is dead after its second.
	want := map[string]int{fmt.Sprint("alpha alpha ", alpha): 8, fmt.Sprint("beta beta ", beta): 2}
	if fmt.Sprint(ran) != fmt.Sprint(want) {
		t.Errorf("handler, queue and process of each attempt: got %v, want %v", ran, want)
	}
	dead := values[string](s, `select concat_ws(' ', id, attempts, last_error) from jobs where state = 'dead'`)
	if want := []string{"3 2 one of the attempts that fail"}; !slices.Equal(dead, want) {
		t.Errorf("dead: got %q, want %q", dead, want)
	}
	if log := p.log(); strings.Contains(log, "panic") {
		t.Error("log: got a panic in it, want none")
	}
	p.stop()
	s.cleanEnd("1 dead, 4 done")
}

// It takes the log of its process with it, and nothing else.
func TestHandlerThatClosesTheOutputCostsNoJob(t *testing.T) {
	t.Parallel()
	s := newSite(t, goQueue)
	p := s.run()
	child := p.ready("go")
	for _, name := range []string{"CloseOutput", "Mark", "Mark"} {
		s.insert("go", name)
		s.allDone()
	}
	if got := value[int](s, `select max(attempts) from jobs`); got != 1 {
		t.Errorf("attempts of a job: got up to %d, want 1", got)
	}
	kill(t, child) // whoever follows has a log again
	s.until(`select pid <> $1 from queues where queue = 'go'`, child)
	s.insert("go", "Mark")
	s.allDone()
	p.logs(`job ended: queue=go job="Mark" .*status=done`)
	p.stop()
	s.cleanEnd("4 done")
}
