package cli_test

import (
	"fmt"
	"regexp"
	"syscall"
	"testing"

	"queuekeeper/internal/eventually"
)

// shows waits until status prints a match of each pattern.
func (s *site) shows(patterns ...string) {
	s.t.Helper()
	eventually.OK(s.t, patience, func() error {
		out := s.does(nil, "status")
		for _, pattern := range patterns {
			if !regexp.MustCompile("(?m)" + pattern).MatchString(out) {
				return fmt.Errorf("status: got no match of %q, want one in\n%s", pattern, out)
			}
		}
		return nil
	})
}

func TestStatusTellsWhatBecameOfTheChildren(t *testing.T) {
	t.Parallel()
	const file = twoQueues + `
[[worker]]
queue = "mail"
command = ["no-such-program"]
`
	s := newSite(t, file)
	p := s.run()
	kill(t, p.ready("github"))
	s.shows(`^github .* \S+/\d+, 1 restart$`, `^github: last exit \S+ ago: child killed by signal 9$`,
		`^slack .* \S+/\d+$`, `^mail .* nobody, parked$`, `^mail: parked: .*no-such-program`)

	s.write("queues.toml", file+"lease = 1")
	p.signal(syscall.SIGHUP)
	p.logs(`file not taken on`)
	s.write("queues.toml", file) // status reads it too
	s.shows(`^\S+: reload failed, the file before still holds: queues\.toml:\d+: `)

	p.signal(syscall.SIGUSR2)
	s.shows(`^github .*, quiet, 1 restart$`, `^slack .*, quiet$`)
	p.stop()
	s.shows(`^github .* nobody$`, `^slack .* nobody$`, `^mail .* nobody$`)
	if ended := value[int](s, `select count(*) from queues where child_state = 'ended' and child_pid is null`); ended != 3 {
		t.Errorf("queues whose child has ended: got %d, want 3", ended)
	}
	s.cleanEnd("")
}

// A queue that is not in the file of anybody who runs is nobody's: its jobs still do not stay running.
func TestRunBringsBackJobsOfQueuesNobodyServes(t *testing.T) {
	s := newSite(t, twoQueues)
	s.exec(`insert into jobs (queue, name, state, attempts, epoch) values ('lost', 'Do', 'running', 1, 1)`)
	p := s.run()
	s.until(`select state = 'pending' from jobs`)
	p.logs(`job recovered: queue=lost id=1 attempt=1 `)
	p.logs(`queue has waiting jobs and no worker: queue=lost waiting=1 `)
	p.stop()
	s.cleanEnd("1 pending")
}
