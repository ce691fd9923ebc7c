package deploy_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"queuekeeper/internal/eventually"
)

// supervisord starts one with the program section of this folder. control is its supervisorctl; end tells it to end.
func supervisord(t *testing.T) (s *site, control []string, end func() (wait func())) {
	s = newSite(t, "supervisord", "supervisorctl")
	s.write("queuekeeper.conf", s.adapted("supervisord.conf",
		"/var/log/supervisor/queuekeeper.log", s.path("log"),
		"postgres://queuekeeper@localhost/app", strings.ReplaceAll(s.url, "%", "%%")))
	s.write("all.conf", `
[unix_http_server]
file=%(here)s/control
[rpcinterface:supervisor]
supervisor.rpcinterface_factory = supervisor.rpcinterface:make_main_rpcinterface
[supervisord]
logfile=/dev/null
pidfile=%(here)s/pid
childlogdir=%(here)s
[supervisorctl]
serverurl=unix://%(here)s/control
[include]
files=queuekeeper.conf
`)
	cmd := s.command("supervisord", "-n", "-c", "all.conf")
	wait := s.start(cmd)
	return s, []string{"supervisorctl", "-c", "all.conf"}, func() func() {
		s.t.Helper()
		s.signal(cmd.Process.Pid, syscall.SIGTERM)
		return wait
	}
}

func TestSupervisordStopsInOrder(t *testing.T) {
	s, control, end := supervisord(t)
	s.drains(func() func() { return s.start(s.command(append(control, "stop", "queuekeeper")...)) })
	s.logs(1, `stopped: queuekeeper \(exit status 0\)`)
	end()()
	s.cleanEnd("2 done, 1 pending")
}

func TestSupervisordItselfStopsInOrder(t *testing.T) {
	s, _, end := supervisord(t)
	s.drains(end)
	s.logs(1, `stopped: queuekeeper \(exit status 0\)`)
	s.cleanEnd("2 done, 1 pending")
}

func TestSupervisordsSignalHUPEndsNothing(t *testing.T) {
	s, control, end := supervisord(t)
	s.insert("held")
	s.inHand()
	before := s.supervisor()
	s.write("queues.toml", queues+"[[worker]]\nqueue = \"new\"\ncommand = [\"true\"]\n")
	s.does(append(control, "signal", "HUP", "queuekeeper")...)
	s.insert("new")
	s.until(`select state = 'done' from jobs where queue = 'new'`)
	s.write("go", "")
	s.until(`select bool_and(state = 'done') from jobs`)
	if after := s.supervisor(); after != before {
		t.Errorf("supervisor: got process %d, want %d still", after, before)
	}
	end()()
	s.cleanEnd("2 done")
}

func TestSupervisordGivesAFaultyFileUp(t *testing.T) {
	s, control, end := supervisord(t)
	s.logs(1, `supervisor started`)
	s.does(append(control, "stop", "queuekeeper")...)
	s.write("queues.toml", "queue = 1\n")
	s.prints(append(control, "start", "queuekeeper")...) // says that it could not
	eventually.OK(t, patience, func() error {
		// EXITED, if it took more than a second to find the fault.
		got := s.prints(append(control, "status")...)
		if !strings.Contains(got, "FATAL") && !strings.Contains(got, "EXITED") {
			return fmt.Errorf("status: got %q, want FATAL or EXITED", got)
		}
		return nil
	})
	s.logs(1, `exited: queuekeeper \(exit status 78;`)
	end()()
	s.cleanEnd("none")
}
