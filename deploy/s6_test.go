package deploy_test

import (
	"fmt"
	"strings"
	"testing"

	"queuekeeper/internal/eventually"
)

// s6 starts s6-supervise for the service "s6" of the site.
func s6(t *testing.T) (s *site, end func()) {
	s = newSite(t, "s6-supervise", "s6-svc", "s6-svstat", "s6-envdir")
	s.write("s6/env/DATABASE_URL", s.url)
	s.install("s6/run", "s6/finish", "s6/timeout-kill")
	wait := s.start(s.command("s6-supervise", "s6"))
	s.logs(1, `supervisor started`)
	return s, func() {
		s.t.Helper()
		s.does("s6-svc", "-x", "s6")
		wait()
	}
}

// stat is one line of what s6 says of the service.
func (s *site) stat(fields string) string {
	return strings.TrimSpace(s.prints("s6-svstat", "-o", fields, "s6"))
}

func TestS6StopsInOrder(t *testing.T) {
	s, end := s6(t)
	s.drains(func() func() { return s.start(s.command("s6-svc", "-wD", "-T", "30000", "-d", "s6")) })
	if got := s.stat("up,exitcode"); got != "false 0" {
		t.Errorf("up, exit status as s6 saw it: got %s, want false 0", got)
	}
	end()
	s.cleanEnd("2 done, 1 pending")
}

func TestS6LeavesAFaultyFileAlone(t *testing.T) {
	s, end := s6(t)
	s.does("s6-svc", "-wD", "-T", "30000", "-d", "s6")
	s.write("queues.toml", "queue = 1\n")
	s.does("s6-svc", "-u", "s6")
	eventually.OK(t, patience, func() error {
		if got := s.stat("up,wantedup,exitcode"); got != "false false 78" {
			return fmt.Errorf("up, wanted up, exit status: got %s, want false false 78", got)
		}
		return nil
	})
	end()
	s.cleanEnd("none")
}
