package cli_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"queuekeeper/internal/eventually"
)

// ends waits until there is no process whose command line begins with a text.
func (s *site) ends(begin string) {
	s.t.Helper()
	eventually.OK(s.t, patience, func() error {
		if left := s.processes(begin); len(left) > 0 {
			return fmt.Errorf("processes %q: got %v, want none", begin, left)
		}
		return nil
	})
}

func (s *site) remove(name string) {
	s.t.Helper()
	if err := os.Remove(s.path(name)); err != nil {
		s.t.Fatal(err)
	}
}

// asApp makes a role that may use the tables, as whoever runs the program without being their owner, and has the site
// use it.
func (s *site) asApp() (role string) {
	s.t.Helper()
	u, err := url.Parse(s.url)
	if err != nil {
		s.t.Fatal(err)
	}
	role = value[string](s, `select 'app_' || oid from pg_database where datname = current_database()`)
	quoted := pgx.Identifier{role}.Sanitize()
	s.exec(`create role ` + quoted + ` login`)
	s.exec(`grant select, insert, update, delete on jobs, queues, lanes to ` + quoted)
	s.exec(`grant select on queuekeeper_version to ` + quoted)
	s.t.Cleanup(func() {
		s.exec(`drop owned by ` + quoted)
		s.exec(`drop role ` + quoted)
	})
	u.User = url.User(role)
	s.url = u.String()
	return quoted
}

// refused runs a command that must change nothing, exit with status 1 and say why.
func (s *site) refused(why string, args ...string) {
	s.t.Helper()
	const rows = `select coalesce(string_agg(j::text, E'\n' order by id), '') from jobs j`
	before := value[string](s, rows)
	cmd := s.command(args)
	out, _ := cmd.CombinedOutput() // its error is the status
	if code := cmd.ProcessState.ExitCode(); code != 1 || !strings.Contains(string(out), why) {
		s.t.Errorf("%v: got exit status %d and %q, want 1 and %q", args, code, out, why)
	}
	if after := value[string](s, rows); after != before {
		s.t.Errorf("%v: got jobs\n%s\nwant them as before:\n%s", args, after, before)
	}
}

// shownQueue is what `status --json` says of a queue, as far as these tests look.
type shownQueue struct {
	Queue      string `json:"queue"`
	Holder     string `json:"holder"`
	ChildState string `json:"child_state"`
	ChildPID   int    `json:"child_pid"`
	Restarts   int    `json:"restarts"`
}

func (s *site) status() map[string]shownQueue {
	s.t.Helper()
	var all []shownQueue
	if err := json.Unmarshal([]byte(s.does(nil, "status", "--json")), &all); err != nil {
		s.t.Fatal(err)
	}
	shown := map[string]shownQueue{}
	for _, q := range all {
		if _, twice := shown[q.Queue]; twice {
			s.t.Errorf("status: got queue %s twice, want once", q.Queue)
		}
		shown[q.Queue] = q
	}
	return shown
}

// workEach waits until status shows each queue with one worker, which is a living process.
func (p *process) workEach(queues ...string) {
	p.s.t.Helper()
	eventually.OK(p.s.t, patience, func() error {
		shown := p.s.status()
		for _, queue := range queues {
			q, pid := shown[queue], p.s.running("queuekeeper: "+queue+" ")
			want := shownQueue{queue, q.Holder, "ready", pid, strings.Count(p.log(), "child died: queue="+queue+" ")}
			if q != want || !strings.HasSuffix(q.Holder, fmt.Sprint("/", pid)) {
				return fmt.Errorf("status of %s: got %+v, want %+v and a holder with that process", queue, q, want)
			}
		}
		return nil
	})
}

// times are when the lines that match were logged, in order.
func (p *process) times(pattern string) (at []time.Time) {
	p.s.t.Helper()
	re := regexp.MustCompile(pattern)
	for line := range strings.Lines(p.log()) {
		if !re.MatchString(line) {
			continue
		}
		stamp, _, _ := strings.Cut(line, " ")
		when, err := time.Parse("2006-01-02T15:04:05.000Z07:00", stamp)
		if err != nil {
			p.s.t.Fatalf("time of line %q: %v", line, err)
		}
		at = append(at, when)
	}
	slices.SortFunc(at, time.Time.Compare)
	return at
}

// openFiles is how many files a process has open.
func openFiles(t *testing.T, pid int) int {
	t.Helper()
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}
