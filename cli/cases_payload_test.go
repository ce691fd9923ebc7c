package cli_test

import (
	"fmt"
	"strings"
	"testing"
)

// echoes is a Go handler and a command that write down the args they get, byte for byte.
const echoes = `
[[worker]]
queue = "go"
[[worker]]
queue = "sh"
command = ["sh", "-c", "cat > sh-$JOB_ID"]
`

// PL02, PL03, PL07: what is stored is what arrives, and every digit of it.
func TestArgsReachHandlersUnchanged(t *testing.T) {
	t.Parallel()
	s := newSite(t, echoes)
	for _, args := range []string{
		`null`, `[]`, `[1,2]`, `"s"`, `5`, `true`, `{}`, `{"a":1,"a":2}`,
		`{"s":"\ud83d\ude00"}`,
		`{"id":3889108265204450030,"n":9007199254740993,"d":0.1000000000000000055,"h":1e400}`,
		`{"h":1e100000}`,
	} {
		for _, queue := range []string{"go", "sh"} {
			s.exec(`insert into jobs (queue, name, args) values ($1, 'Echo', $2::text::jsonb)`, queue, args)
			s.does(nil, "enqueue", queue, "Echo", args)
		}
	}
	s.exec(`insert into jobs (queue, name, args) values ('go', 'Echo', null), ('sh', 'Echo', null)`)
	p := s.run()
	s.allDone()
	for _, id := range values[int64](s, `select id from jobs`) {
		file := fmt.Sprintf("%s-%d", value[string](s, `select queue from jobs where id = $1`, id), id)
		if got, want := s.read(file), value[string](s, `select coalesce(args::text, '{}') from jobs where id = $1`, id); got != want {
			t.Errorf("job %d of %s got %.200s, want %.200s", id, file, got, want)
		}
	}
	emoji := value[int64](s, `select min(id) from jobs where queue = 'sh' and args ->> 's' is not null`)
	if got, want := s.read(fmt.Sprintf("sh-%d", emoji)), `{"s": "😀"}`; got != want {
		t.Errorf("emoji arrived as %+q, want %+q", got, want)
	}
	digits := value[int64](s, `select min(id) from jobs where queue = 'go' and args ->> 'id' is not null`)
	want := `{"d": 0.1000000000000000055, "h": 1` + strings.Repeat("0", 400) + `, "n": 9007199254740993, "id": 3889108265204450030}`
	if got := s.read(fmt.Sprintf("go-%d", digits)); got != want {
		t.Errorf("numbers arrived as %s, want %s", got, want)
	}
	p.stop()
	s.cleanEnd("46 done")
}

// PL07: no later attempt could read what a handler cannot decode.
func TestArgsThatDoNotDecodeAreDeadWithOneClearError(t *testing.T) {
	s := newSite(t, echoes)
	s.exec(`insert into jobs (queue, name, args)
select 'go', 'Object', args::jsonb from unnest(array['{}', 'null', null, '{"a": 1}', '[1, 2]', '"s"', '5', 'true']) args`)
	p := s.run()
	s.until(`select not bool_or(state in ('pending', 'running')) from jobs`)
	for _, told := range values[string](s, `select attempts || ' ' || last_error from jobs where state = 'dead'`) {
		if want := "1 decode args of Object: json: cannot unmarshal "; !strings.HasPrefix(told, want) {
			t.Errorf("attempts, last_error: got %q, want %s...", told, want)
		}
	}
	p.stop()
	s.cleanEnd("4 dead, 4 done")
}

// PL05: JSON libraries give up, or worse, at this depth; only a plain INSERT can bring it in.
func TestJobNestedTooDeeplyIsDeadAlone(t *testing.T) {
	s := newSite(t, echoes)
	s.exec(`set max_stack_depth = '7MB'`)
	for _, queue := range []string{"go", "sh"} {
		s.insert(queue, "Echo")
		s.exec(`insert into jobs (queue, name, args)
select $1, 'Echo', args::jsonb
from unnest(array[repeat('[', 12000) || repeat(']', 12000), repeat('{"a":', 12000) || '1' || repeat('}', 12000)]) args`, queue)
		s.insert(queue, "Echo")
	}
	p := s.run()
	s.until(`select not bool_or(state in ('pending', 'running')) from jobs`)
	for _, told := range values[string](s, `select attempts || ' ' || last_error from jobs where state = 'dead'`) {
		if want := "1 nested deeper than 1000 levels at byte "; !strings.HasPrefix(told, want) {
			t.Errorf("attempts, last_error: got %q, want %s...", told, want)
		}
	}
	if n := strings.Count(p.log(), "child started"); n != 2 {
		t.Errorf("children: got %d, want 2", n)
	}
	if got := s.does(nil, "status", "--json"); strings.Count(got, `"dead": 2`) != 2 {
		t.Errorf("status: got %s, want 2 dead in both queues", got)
	}
	p.stop()
	s.cleanEnd("4 dead, 4 done")
}

// PL09, PL10, PL11: whatever is in its name, a queue is told of its jobs. Polling would take a minute.
func TestEveryQueueNameIsNotified(t *testing.T) {
	long := strings.Repeat("q", 57)
	queues := []string{"my-queue", "my.queue", "my_queue", "0", long + "a", long + "b", "select"}
	var file strings.Builder
	for _, queue := range queues {
		fmt.Fprintf(&file, "[[worker]]\nqueue = %q\ncommand = [\"true\"]\npoll_interval = \"60s\"\n", queue)
	}
	s := newSite(t, file.String())
	p := s.run()
	for _, queue := range queues {
		p.ready(queue)
	}
	for _, queue := range queues[:len(queues)-2] {
		s.insert(queue, "Sync")
	}
	s.allDone()
	s.insert("select", "Sync")
	s.does(nil, "enqueue", long+"b", "Sync")
	s.allDone()
	for _, late := range values[string](s, `
select format('%s: %s', queue, started_at - created_at) from jobs where started_at - created_at > interval '1 s'`) {
		t.Errorf("from insert to start: got %s, want at most 1 s", late)
	}
	for _, queue := range []string{"MyQueue", "a b", "a$"} {
		_, err := s.conn.Exec(t.Context(), `insert into jobs (queue, name) values ($1, 'Sync')`, queue)
		if err == nil || !strings.Contains(err.Error(), "queue_is_lower_case_letters_digits_dot_dash_underscore") {
			t.Errorf("insert into queue %q: got %v, want the constraint on queue names", queue, err)
		}
	}
	if strings.Contains(p.log(), "42622") {
		t.Errorf("log: got a notice of a name that was cut, want none:\n%s", p.log())
	}
	p.stop()
	s.cleanEnd("7 done")
}
