package cli_test

import (
	"fmt"
	"syscall"
	"testing"

	"queuekeeper/internal/eventually"
)

// It does not save up what it has to collect.
func TestProcessOneCollectsWhatJobsLeaveAtOnce(t *testing.T) {
	t.Parallel()
	const many, handful = 100, 20
	s := newSite(t, `
[[worker]]
queue = "github"
concurrency = 5
command = ["sh", "-c", "(sleep 0.1 &); exit 0"]
`)
	s.exec(`insert into jobs (queue, name) select 'github', 'Sync' from generate_series(1, $1)`, many)
	p := s.startAsProcessOne()
	one := p.one()
	most := 0
	eventually.OK(t, patience, func() error {
		most = max(most, len(zombies(t, one)))
		if !value[bool](s, `select bool_and(state = 'done') from jobs`) {
			return fmt.Errorf("jobs: got some that are not done:\n%s", s.jobs())
		}
		return nil
	})
	if most > handful {
		t.Errorf("ended processes that nobody collected: got %d at once, want a handful", most)
	}
	send(t, syscall.SIGTERM, one)
	p.exits(0)
	s.cleanEnd(fmt.Sprintf("%d done", many))
}
