package child

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"queuekeeper/internal/wire"
)

// table is the one of docs/operations.md: what becomes of a child, by what reaches it and by what it is doing.
var table = [][]string{
	{"", "without a lease", "holding", "draining", "stopping"},
	{"TERM", "leaves", "drains", "nothing", "nothing"},
	{"QUIT", "leaves", "stops", "stops", "nothing"},
	{"INT", "nothing", "nothing", "nothing", "nothing"},
	{"HUP", "nothing", "nothing", "nothing", "nothing"},
	{"USR1", "logs what it does", "logs what it does", "logs what it does", "logs what it does"},
	{"USR2", "nothing", "nothing", "nothing", "nothing"},
	{"PIPE", "nothing", "nothing", "nothing", "nothing"},
	{"drain", "leaves", "drains", "nothing", "nothing"},
	{"stop", "leaves", "stops", "stops", "nothing"},
	{"set", "takes it on", "takes it on", "takes it on", "takes it on"},
	{"end of the pipe", "leaves", "drains", "nothing", "nothing"},
}

func TestCellsOfTheDocumentAreThoseThatAreTested(t *testing.T) {
	text, err := os.ReadFile("../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	want := "<!-- cells: process -->\n"
	for i, line := range table {
		want += "| " + strings.Join(line, " | ") + " |\n"
		if i == 0 {
			want += strings.Repeat("|---", len(line)) + "|\n"
		}
	}
	if !strings.Contains(string(text), want+"\n") {
		t.Errorf("docs/operations.md: got no such table, want\n%s", want)
	}
}

func TestChildDoesWhatTheTableSays(t *testing.T) {
	for _, line := range table[1:] {
		for i, state := range table[0][1:] {
			t.Run(state+"/"+line[0], func(t *testing.T) {
				t.Parallel()
				c := newProcess(t)
				c.reach(state)
				c.meet(line[0])
				c.prove(line[i+1], state)
			})
		}
	}
}

// reach starts the child and brings it into a state, with a job in hand if it has a lease.
func (c *process) reach(state string) {
	c.t.Helper()
	if state == "without a lease" {
		c.exec(`insert into queues (queue, epoch, supervisor, n, c, host, expires_at)
			values ('q', 1, 'rival', 1, 1, 'web-2', now() + interval '1 hour')`)
		c.start()
		c.status(wire.StandingBy)
		return
	}
	job := "Heeds"
	if state == "stopping" {
		job = "Ignores"
	}
	c.insert(job, 1)
	c.start()
	c.notes("began")
	switch state {
	case "draining":
		c.meet("drain")
		c.logs("draining: ")
	case "stopping":
		c.meet("stop")
		c.notes("told")
	}
}

// meet has something reach the child.
func (c *process) meet(event string) {
	c.t.Helper()
	switch event {
	case wire.Drain, wire.Stop:
		c.write(wire.Control{Do: event, Within: c.set.ShutdownTimeout})
	case wire.Set:
		to := wire.Changed{Worker: c.set.Worker, ShutdownTimeout: c.set.ShutdownTimeout}
		to.Worker.MaxJobsPerSecond = 100
		c.write(wire.Control{Do: wire.Set, Set: &to})
	case "end of the pipe":
		c.orders.Close()
		c.logs("the supervisor is gone")
	default:
		c.signal(map[string]syscall.Signal{
			"TERM": syscall.SIGTERM, "QUIT": syscall.SIGQUIT, "INT": syscall.SIGINT, "HUP": syscall.SIGHUP,
			"USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2, "PIPE": syscall.SIGPIPE,
		}[event])
	}
}

// prove fails unless what happens is what the table says.
func (c *process) prove(says, state string) {
	c.t.Helper()
	switch says {
	case "leaves":
		c.exits()
		c.want(`select supervisor from queues`, "rival")
	case "drains":
		c.logs("draining: ")
		c.drains()
	case "stops":
		c.notes("told")
		c.exits()
		c.want(`select concat_ws(' ', state, attempts, excused) from jobs`, "pending 1 1")
		c.assertReleased()
	case "nothing":
		c.goesOn(state)
	case "logs what it does":
		c.logs("dump: queue=q line=")
		c.goesOn(state)
	case "takes it on":
		c.logs("limits taken on: queue=q max_jobs_per_second=100")
		c.goesOn(state)
	default:
		c.t.Fatalf("table: got %q, want one of the words above", says)
	}
}

// goesOn fails unless the child behaves as one in its state does that nothing has reached.
func (c *process) goesOn(state string) {
	c.t.Helper()
	switch state {
	case "without a lease":
		c.exec(`delete from queues`)
		c.exec(`select pg_notify('jobs_q', 'lease')`)
		c.status(wire.Ready)
		c.signal(syscall.SIGTERM)
		c.exits()
	case "holding":
		c.let()
		c.done(1)
		c.insert("Heeds", 1)
		c.done(2)
		c.hasNot("told")
		c.signal(syscall.SIGTERM)
		c.exits()
	case "draining":
		c.drains()
	case "stopping":
		c.let()
		c.exits()
		c.want(`select concat_ws(' ', state, attempts, excused) from jobs`, "done 1 0")
	}
	c.assertReleased()
}

// drains fails unless the job in hand may finish and no other is started.
func (c *process) drains() {
	c.t.Helper()
	c.insert("Heeds", 1)
	c.let()
	c.exits()
	c.hasNot("told")
	c.want(`select string_agg(concat_ws(' ', state, attempts), ', ' order by id) from jobs`, "done 1, pending 0")
	c.assertReleased()
}
