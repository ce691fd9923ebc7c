package deploy_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"queuekeeper/internal/eventually"
)

// runit starts runsv for the service "runit" of the site. Its finish also notes each exit status of run, for nothing
// else of runit tells it.
func runit(t *testing.T) (s *site, end func()) {
	s = newSite(t, "runsv", "sv", "chpst")
	s.write("runit/env/DATABASE_URL", s.url)
	s.install("runit/run")
	finish := strings.Replace(s.adapted("runit/finish"), "\n", "\necho $1 >> ../statuses\n", 1)
	s.write("runit/finish", finish)
	wait := s.start(s.command("runsv", "runit"))
	s.logs(1, `supervisor started`)
	return s, func() {
		s.t.Helper()
		s.does("sv", "exit", s.path("runit"))
		wait()
	}
}

func TestRunitStopsInOrder(t *testing.T) {
	s, end := runit(t)
	s.drains(func() func() { return s.start(s.command("sv", "-w", "30", "stop", s.path("runit"))) })
	if got := s.read("statuses"); got != "0\n" {
		t.Errorf("exit status as runsv saw it: got %q, want 0", got)
	}
	end()
	s.cleanEnd("2 done, 1 pending")
}

// The job of the first life goes on, for its child drains; the second life stands by until that child has gone.
func TestRunitRestartsAKilledSupervisor(t *testing.T) {
	s, end := runit(t)
	s.insert("held")
	s.inHand()
	first := s.supervisor()
	s.signal(first, syscall.SIGKILL)
	s.logs(1, `standing by: queue=held`)
	s.insert("held")
	s.insert("quick")
	s.write("go", "")
	s.until(`select bool_and(state = 'done') from jobs`)
	if second := s.supervisor(); second == first {
		t.Errorf("supervisor: got process %d again, want a new one", second)
	}
	s.does("sv", "-w", "30", "stop", s.path("runit"))
	end()
	s.cleanEnd("3 done")
}

func TestRunitLeavesAFaultyFileAlone(t *testing.T) {
	s, end := runit(t)
	s.does("sv", "-w", "30", "stop", s.path("runit"))
	s.write("queues.toml", "queue = 1\n")
	s.write("statuses", "")
	s.does("sv", "up", s.path("runit"))
	eventually.OK(t, patience, func() error {
		got, status := s.prints("sv", "status", s.path("runit")), s.read("statuses")
		if !strings.HasPrefix(got, "down: ") || strings.Contains(got, "want up") || status != "78\n" {
			return fmt.Errorf("status, exit statuses: got %q, %q, want down for good after one 78", got, status)
		}
		return nil
	})
	s.write("queues.toml", queues)
	s.insert("quick")
	s.does("sv", "up", s.path("runit"))
	s.until(`select bool_and(state = 'done') from jobs`)
	s.does("sv", "-w", "30", "stop", s.path("runit"))
	end()
	s.cleanEnd("1 done")
}
