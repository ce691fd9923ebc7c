package cli_test

import (
	"os"
	"testing"
	"time"

	"queuekeeper/internal/testdb"
)

// What it may not write to the one table costs nothing but time. What it may not write to the other is its lease: it
// ends what runs before another could start it, and says so. Given back the right it works on, with nobody's help.
func TestChildThatMayNotWriteAnyMoreKeepsWithinItsLease(t *testing.T) {
	t.Parallel()
	const lease = 2 * time.Second
	for table, c := range map[string]struct {
		sleep, want string
		keeps       bool
	}{
		"jobs":   {sleep: "1", want: "done 1 0", keeps: true},
		"queues": {sleep: "30", want: "done 2 1"},
	} {
		t.Run(table, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, `
lease = "2s"
[[worker]]
queue = "github"
command = ["sh", "-c", "test $JOB_NAME = Short || test $JOB_ATTEMPT != 1 || sleep `+c.sleep+`"]
`)
			app := s.asApp()
			p := s.run()
			child := p.ready("github")
			s.insert("github", "Long")
			s.running("sleep " + c.sleep)
			s.exec(`revoke update on ` + table + ` from ` + app)
			begin := time.Now()
			s.insert("github", "Short")
			p.logs(`waiting for the database: queue=github .*permission denied for table ` + table)
			s.ends("sleep " + c.sleep)
			if c.keeps { // with an outcome that cannot be written
				s.leaseGap("github", `select now() > '`+time.Now().Add(2*lease).Format(time.RFC3339Nano)+`'`)
			} else {
				if took := time.Since(begin); took > lease+scheduling {
					t.Errorf("from the last renewal to the end of the job: got %v, want at most the lease of %v", took, lease)
				}
				p.logs(`the lease runs out and cannot be renewed; ending what runs: queue=github`)
				s.until(`select expires_at < now() - interval '2 s' from queues`)
			}
			if got := value[int](s, `select attempts from jobs where name = 'Short'`); got != 0 {
				t.Errorf("attempts of the job behind it: got %d, want 0", got)
			}
			if got, want := s.status()["github"].ChildState, "waiting for the database"; c.keeps && got != want {
				t.Errorf("state of the child: got %q, want %q", got, want)
			}
			s.exec(`grant update on ` + table + ` to ` + app)
			s.allDone()
			got := value[string](s, `select concat_ws(' ', state, attempts, excused) from jobs where name = 'Long'`)
			if got != c.want {
				t.Errorf("state, attempts, excused: got %s, want %s", got, c.want)
			}
			if now := p.ready("github"); now != child {
				t.Errorf("child: got process %d, want still %d", now, child)
			}
			p.stop()
			s.cleanEnd("2 done")
		})
	}
}

// Two at once would meet in the folder that each makes and removes.
func TestJobOfAnOutageLongerThanTheLeaseRunsAgainAlone(t *testing.T) {
	t.Parallel()
	const lease = 2 * time.Second
	cluster := testdb.Own(t)
	s := siteAt(t, cluster.URL("postgres"), `
lease = "2s"
[[worker]]
queue = "github"
command = ["sh", "sync.sh"]
`)
	s.write("sync.sh", `
mkdir working || exit 65
trap 'rmdir working; exit 1' TERM
if test $JOB_ATTEMPT = 1; then sleep 30 & wait; fi
rmdir working
`)
	p := s.run()
	child := p.ready("github")
	s.insert("github", "Sync")
	s.running("sleep 30")
	if err := cluster.Halt(t.Context()); err != nil {
		t.Fatal(err)
	}
	down := time.Now()
	s.ends("sleep 30")
	if took := time.Since(down); took > lease+scheduling {
		t.Errorf("from the outage to the end of the job: got %v, want at most the lease of %v", took, lease)
	}
	time.Sleep(time.Until(down.Add(2 * lease))) // part of the script
	if err := cluster.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.conn = testdb.Connect(t, s.url)
	s.allDone()
	got := value[string](s, `select format('%s %s %s', attempts, excused, last_error) from jobs`)
	if want := "2 1 "; got != want {
		t.Errorf("attempts, excused, last_error: got %q, want %q", got, want)
	}
	if _, err := os.Stat(s.path("working")); err == nil {
		t.Error("folder of the job: got it left, want none")
	}
	if now := p.ready("github"); now != child {
		t.Errorf("child: got process %d, want still %d", now, child)
	}
	p.stop()
	s.cleanEnd("1 done")
}
