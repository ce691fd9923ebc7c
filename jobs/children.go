package jobs

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// Child is what a supervisor last knew of the child of one queue, for whoever looks from outside.
type Child struct {
	Queue    string
	State    string        // one of the constants below
	Detail   string        // why, for people; "": nothing to say
	PID      int           // 0: no process now
	Restarts int           // after ends of its processes that nobody asked for, since the supervisor's start
	LastExit string        // how the last process that died by itself ended: "exit status 3"; "": none did
	ExitAgo  time.Duration // since then
	Deaths   []Death       // of its processes since one was last ready; not stored
}

// The states of a child. docs/operations.md says what each means and what to do.
const (
	ChildStarting   = "starting"
	ChildReady      = "ready"
	ChildQuiet      = "quiet"
	ChildStandingBy = "standing by"
	ChildWaiting    = "waiting for the database"
	ChildRestarting = "restarting"
	ChildParked     = "parked"
	ChildLeaving    = "leaving"
	ChildEnded      = "ended"
)

// Picture is what a supervisor last knew of all its children.
type Picture struct {
	Supervisor   string // as in Holder
	Host         string
	Children     []Child
	FailedReload string // why the last reload changed nothing; "": it did not fail

	// Removed are those of queues that are not in the file any more and whose processes have ended. They are not stored.
	Removed []Child
}

// StorePicture stores what has changed in a picture, and all of it that was stored longer than again ago. Of a queue
// that another supervisor holds it stores nothing; what this supervisor said of queues that are not in the picture, or
// anybody a day ago, it takes back. It waits for no row of queues: if somebody has locked one that should change,
// complete is false and the same picture is to be stored once more.
func (s Schema) StorePicture(ctx context.Context, conn *pgx.Conn, p Picture, again time.Duration) (complete bool, err error) {
	c := columnsOf(p.Children)
	batch := &pgx.Batch{}
	batch.Queue(s.sql(makeQueuesSQL), c.queues)
	batch.Queue(s.sql(storePictureSQL), p.Supervisor, storable(p.Host), storable(p.FailedReload), seconds(again),
		c.queues, c.states, c.details, c.pids, c.restarts, c.exits, c.ages,
	).QueryRow(func(row pgx.Row) error { return row.Scan(&complete) })
	batch.Queue(s.sql(forgetChildrenSQL), p.Supervisor, c.queues)
	if err := conn.SendBatch(ctx, batch).Close(); err != nil {
		return false, fmt.Errorf("store what the children are: %w", err)
	}
	return complete, nil
}

// A queue that never had a holder has no row. In order: two who make the same rows must not wait for each other.
const makeQueuesSQL = `
insert into {queues} (queue)
select c.queue
from unnest($1::text[]) as c(queue)
where not exists (select from {queues} q where q.queue = c.queue)
order by c.queue
on conflict do nothing`

// A supervisor that stands by does not talk over the one that works. Who may talk is asked twice: the row may have
// got another holder before it was locked.
const storePictureSQL = `
with child as (
	select queue, state, nullif(detail, '') as detail, nullif(pid, 0) as pid, restarts, nullif(exit, '') as exit,
		case when exit <> '' then now() - age * interval '1 s' end as exit_at,
		nullif($3::text, '') as failed_reload
	from unnest($5::text[], $6::text[], $7::text[], $8::int[], $9::int[], $10::text[], $11::float8[])
		as c(queue, state, detail, pid, restarts, exit, age)
), news as (
	select c.*
	from child c
	join {queues} q on q.queue = c.queue
	where (q.supervisor = $1 or q.supervisor is null or q.expires_at < now())
		and (q.seen_at is null or q.seen_at < now() - $4::float8 * interval '1 s'
			or (q.child_supervisor, q.child_host, q.child_state, q.child_detail, q.child_pid, q.restarts, q.last_exit,
				q.failed_reload)
			is distinct from ($1, $2, c.state, c.detail, c.pid, c.restarts, c.exit, c.failed_reload))
), ours as (
	select q.queue
	from {queues} q
	where q.queue = any(array(select queue from news))
		and (q.supervisor = $1 or q.supervisor is null or q.expires_at < now())
	for no key update skip locked
), stored as (
	update {queues} q
	set child_supervisor = $1, child_host = $2, child_state = c.state, child_detail = c.detail, child_pid = c.pid,
		restarts = c.restarts, last_exit = c.exit, last_exit_at = c.exit_at, failed_reload = c.failed_reload,
		seen_at = now()
	from news c
	where q.queue = c.queue and q.queue = any(array(select queue from ours))
	returning q.queue
)
select (select count(*) from news) = (select count(*) from stored)`

const forgetChildrenSQL = `
update {queues}
set child_supervisor = null, child_host = null, child_state = null, child_detail = null, child_pid = null, restarts = null,
	last_exit = null, last_exit_at = null, failed_reload = null, seen_at = null
where queue = any(array(
	select queue
	from {queues}
	where (child_supervisor = $1 and queue <> all($2::text[])) or seen_at < now() - interval '1 day'
	for no key update skip locked))`

// childColumns are children as they cross to Postgres.
type childColumns struct {
	queues, states, details, exits []string
	pids, restarts                 []int
	ages                           []float64
}

func columnsOf(children []Child) childColumns {
	c := childColumns{queues: []string{}} // not null: nothing is equal to it
	for _, child := range children {
		c.queues, c.states, c.details = append(c.queues, child.Queue), append(c.states, child.State), append(c.details, storable(child.Detail))
		c.pids, c.restarts = append(c.pids, child.PID), append(c.restarts, child.Restarts)
		c.exits, c.ages = append(c.exits, storable(child.LastExit)), append(c.ages, seconds(child.ExitAgo))
	}
	return c
}

// maxStored is how many characters of a text about a child are kept: the rows of queues are written all the time.
const maxStored = 300

// storable is a text as Postgres takes it, and no longer than it should be.
func storable(text string) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
	if r := []rune(text); len(r) > maxStored {
		return string(r[:maxStored-1]) + "…"
	}
	return text
}
