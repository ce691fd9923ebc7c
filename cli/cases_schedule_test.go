package cli_test

import (
	"testing"
	"time"
)

// SC01, SC02, SC03: times that no clock shows hinder nobody. The past is due now, the far future and infinity
// are not, and no timer overflows into a busy loop.
func TestStrangeTimesHinderNobody(t *testing.T) {
	t.Parallel()
	s := newSite(t, `
[[worker]]
queue = "github"
command = ["true"]
[[worker]]
queue = "far"
command = ["true"]
poll_interval = "60s"
`)
	s.exec(`
insert into jobs (queue, name, run_at)
select 'github', 'past', t::timestamptz
from unnest(array['-infinity', '0044-03-15 BC', '0001-01-01', '1969-12-31']) t`)
	s.exec(`
insert into jobs (queue, name, run_at)
select queue, 'future', t
from unnest(array['github', 'far']) queue, unnest(array[timestamptz 'infinity', '294276-12-31', now() + interval '25 days',
	now() + interval '50 years', now() + interval '291 years', now() + interval '293 years', now() + interval '5000 years']) t`)
	s.exec(`insert into jobs (queue, name, state, attempts, finished_at) values ('github', 'old', 'done', 1, '-infinity')`)
	s.exec(`
insert into jobs (queue, name, state, attempts, epoch, locked_at, locked_by)
values ('github', 'stale', 'running', 1, 7, 'infinity', 'x/1')`)
	s.exec(`insert into jobs (queue, name) select 'github', 'normal' from generate_series(1, 20)`)
	s.countSteps()
	p := s.run()
	s.until(`select bool_and(state = 'done') from jobs where name <> 'future'`)
	p.ready("far")
	before := s.steps("far")
	s.does(nil, "enqueue", "far", "soon", "--in", "1s")
	s.until(`select state = 'done' from jobs where name = 'soon'`)
	if n := s.steps("far") - before; n > 10 {
		t.Errorf("statements on the row of the queue while it waited a second: got %d, want at most 10", n)
	}
	if ran := values[string](s, `select run_at::text from jobs where name = 'future' and attempts > 0`); len(ran) > 0 {
		t.Errorf("started before their time: got %v, want none", ran)
	}
	if twice := values[string](s, `select run_at::text from jobs where name = 'past' and attempts <> 1`); len(twice) > 0 {
		t.Errorf("due in the past and not started once: got %v, want none", twice)
	}
	for _, args := range [][]string{{"status"}, {"status", "--json"}, {"jobs", "list"}, {"jobs", "list", "--json"}} {
		s.does(nil, args...)
	}
	p.stop()
	s.cleanEnd("27 done, 14 pending")
}

// countSteps makes the database count the updates of each queue's row: every Step is one.
func (s *site) countSteps() {
	s.t.Helper()
	s.exec(`create table steps (queue text primary key, n int not null)`)
	s.exec(`
create function count_step() returns trigger language plpgsql as $$
begin
	insert into steps values (new.queue, 1) on conflict (queue) do update set n = steps.n + 1;
	return null;
end
$$`)
	s.exec(`create trigger count_step after update on queues for each row execute function count_step()`)
}

func (s *site) steps(queue string) int {
	s.t.Helper()
	return value[int](s, `select n from steps where queue = $1`, queue)
}

// SC05: five seconds are five seconds, whatever the worker, the database and whoever enqueues think of the hour.
func TestTimeZonesDoNotMoveATime(t *testing.T) {
	t.Parallel()
	s := newSite(t, `
[[worker]]
queue = "github"
command = ["true"]
`)
	s.database(`set timezone to ''Asia/Kolkata''`)
	p := s.run("TZ=America/New_York")
	p.ready("github")
	s.does([]string{"TZ=Pacific/Apia"}, "enqueue", "github", "in", "--in", "2s")
	at := value[time.Time](s, `select date_trunc('milliseconds', clock_timestamp()) + interval '2 s'`)
	s.does([]string{"TZ=Pacific/Apia"}, "enqueue", "github", "at", "--at", at.In(time.FixedZone("", 2*60*60)).Format(time.RFC3339Nano))
	s.insert("github", "raw")
	s.allDone()
	for _, wrong := range values[string](s, `
select format('%s: %s late', name, started_at - run_at) from jobs where started_at - run_at not between '0' and '1 s'`) {
		t.Errorf("start: got %s, want within a second of run_at", wrong)
	}
	if in := value[float64](s, `select extract(epoch from run_at - created_at)::float8 from jobs where name = 'in'`); in != 2 {
		t.Errorf("--in 2s: got %g s, want 2", in)
	}
	if got := value[time.Time](s, `select run_at from jobs where name = 'at'`); !got.Equal(at) {
		t.Errorf("--at: got %v, want %v", got, at)
	}
	zoneless := `select count(*) from information_schema.columns where table_name in ('jobs', 'queues') and data_type = 'timestamp without time zone'`
	if n := value[int](s, zoneless); n != 0 {
		t.Errorf("columns without a time zone: got %d, want 0", n)
	}
	p.stop()
	s.cleanEnd("3 done")
}
