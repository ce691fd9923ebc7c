package cli_test

import (
	"slices"
	"strings"
	"testing"
	"time"
)

const goQueue = `
[[worker]]
queue = "go"
max_attempts = 2
timeout = "1s"
kill_after = "1s"
`

// PO01: a job that kills its process has its attempts and no more, and is nobody else's trouble.
func TestJobThatKillsItsProcessIsDeadAfterItsAttempts(t *testing.T) {
	t.Parallel()
	s := newSite(t, goQueue+`
[[worker]]
queue = "steady"
command = ["true"]
max_jobs_per_second = 2
`)
	s.insert("go", "KillSelf")
	s.exec(`insert into jobs (queue, name) select 'go', 'Mark' from generate_series(1, 20)`)
	s.exec(`insert into jobs (queue, name) select 'steady', 'Post' from generate_series(1, 6)`)
	p := s.run()
	s.until(`select not bool_or(state in ('pending', 'running')) from jobs`)
	if got := len(s.marks("KillSelf")); got != 2 {
		t.Errorf("starts of the job that kills: got %d, want 2", got)
	}
	if got := len(s.marks("Mark")); got != 20 {
		t.Errorf("starts of the 20 good jobs: got %d, want 20", got)
	}
	got := value[string](s, `select attempts || ' ' || last_error from jobs where name = 'KillSelf'`)
	if want := "2 child killed by signal 9"; got != want {
		t.Errorf("attempts, last_error: got %q, want %q", got, want)
	}
	if got, want := largestGap(s, "steady"), time.Second; got > want {
		t.Errorf("largest gap between the neighbour's starts: got %v, want at most %v", got, want)
	}
	if got := strings.Count(p.log(), "child started: queue=steady"); got != 1 {
		t.Errorf("children of the neighbour: got %d, want 1", got)
	}
	p.stop()
	s.cleanEnd("1 dead, 26 done")
}

// Of several jobs in hand nobody knows which one ended the process, so it makes none of them dead. Those that have
// used up their attempts run alone, with nothing else claimed: then it is known.
func TestJobsThatKillTheirProcessTakeNoOthersWithThem(t *testing.T) {
	t.Parallel()
	s := newSite(t, goQueue+`
concurrency = 5
`)
	s.exec(`
insert into jobs (queue, name)
select 'go', case when n in (2, 4) then 'KillSelf' else 'Slow' end from generate_series(1, 5) n`)
	p := s.run()
	s.until(`select not bool_or(state in ('pending', 'running')) from jobs`)
	if dead := values[string](s, `select name from jobs where state = 'dead'`); slices.Contains(dead, "Slow") {
		t.Errorf("dead jobs: got %v, want only those that kill", dead)
	}
	// Twice in company and once alone.
	if got := value[int](s, `select max(attempts - excused) from jobs`); got > 3 {
		t.Errorf("attempts that count, of any job: got %d, want at most 3", got)
	}
	p.stop()
	s.cleanEnd("2 dead, 3 done")
}

// At every death 50 jobs were in hand, so that good ones use up their attempts too.
func TestOfManyJobsOnlyThoseThatKillEndDead(t *testing.T) {
	t.Parallel()
	s := newSite(t, goQueue+`
concurrency = 50
`)
	s.exec(`
insert into jobs (queue, name)
select 'go', case when n in (20, 200, 390) then 'KillSelf' else 'Nap' end from generate_series(1, 400) n`)
	p := s.run(dividedEnv + "=50") // nine deaths in a row: the delays between them are none of what is told here
	s.until(`select not bool_or(state in ('pending', 'running')) from jobs`)
	if dead := values[string](s, `select name from jobs where state = 'dead'`); slices.Contains(dead, "Nap") {
		t.Errorf("dead jobs: got %v, want only those that kill", dead)
	}
	p.stop()
	s.cleanEnd("3 dead, 397 done")
}

// PO10: whatever status a process leaves with while it holds a job, the job is not done, and the attempt counts.
func TestProcessThatExitsWithAJobInHandIsACrash(t *testing.T) {
	for name, want := range map[string]string{
		"Exit0": "exit status 0", "Exit3": "exit status 3", "Fatal": "exit status 1",
		"Exit75": "exit status 75", "Exit78": "exit status 78", // of a child they would mean something else
		"Panic": "exit status 2: panic: in a goroutine of the handler\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, goQueue)
			s.insert("go", name)
			s.insert("go", "Mark")
			p := s.run()
			s.until(`select not bool_or(state in ('pending', 'running')) from jobs`)
			got := value[string](s, `select attempts || ' ' || last_error from jobs where name = $1`, name)
			if !strings.HasPrefix(got, "2 "+want) {
				t.Errorf("attempts, last_error: got %q, want 2 %s", got, want)
			}
			if got := len(s.marks(name)); got != 2 {
				t.Errorf("starts: got %d, want 2", got)
			}
			p.stop()
			s.cleanEnd("1 dead, 1 done")
		})
	}
}

// LE07: a goroutine cannot be killed, its process can. Three of them in a row, so that no restart after the first is
// late.
func TestHandlersThatIgnoreTheirContextCostAProcessEach(t *testing.T) {
	t.Parallel()
	const timeout, killAfter = time.Second, time.Second // as in the file
	s := newSite(t, goQueue)
	s.exec(`insert into jobs (queue, name, max_attempts) select 'go', 'Hang', 1 from generate_series(1, 3)`)
	s.insert("go", "Mark")
	p := s.start(s.command([]string{"run"})) // at the times of a real run
	s.until(`select state = 'done' from jobs where name = 'Mark'`)
	starts := append(s.marks("Hang"), s.marks("Mark")...)
	if len(starts) != 4 {
		t.Fatalf("starts: got %d, want one of each of 4 jobs", len(starts))
	}
	for i := range 3 {
		if took, most := starts[i+1].Sub(starts[i]), timeout+killAfter+2*time.Second; took > most+scheduling {
			t.Errorf("from the start of handler %d that hangs to the next: got %v, want at most %v", i+1, took, most)
		}
	}
	for _, got := range values[string](s, `select state || ' ' || last_error from jobs where name = 'Hang'`) {
		if want := "dead timed out after 1s and did not end within 2s more"; got != want {
			t.Errorf("state, last_error: got %q, want %q", got, want)
		}
	}
	if got := p.children("go"); got != 4 {
		t.Errorf("processes: got %d, want one for each handler that hangs and one more", got)
	}
	p.stop()
	s.cleanEnd("3 dead, 1 done")
}
