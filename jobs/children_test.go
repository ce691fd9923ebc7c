package jobs_test

import (
	"strings"
	"testing"
	"time"

	"queuekeeper/jobs"
)

// never is an age no row of a test reaches: only what has changed is stored.
const never = time.Hour

// shows stores a picture and wants it complete, or not.
func (s *site) shows(p jobs.Picture, want bool) {
	s.Helper()
	got, err := jobs.Schema("").StorePicture(ctx, s.look, p, never)
	if err != nil || got != want {
		s.Errorf("store picture of %s = %v, %v, want %v", p.Supervisor, got, err, want)
	}
}

func picture(supervisor string, children ...jobs.Child) jobs.Picture {
	return jobs.Picture{Supervisor: supervisor, Host: "web-" + supervisor, Children: children}
}

// childSQL is what the row of the queue says of its child.
const childSQL = `select concat_ws(' ', child_supervisor, child_host, child_state, child_detail, child_pid, restarts, last_exit,
	extract(epoch from now() - last_exit_at)::int / 10 * 10, failed_reload) from queues where queue = $1`

func TestPictureIsStoredForQueuesThatNeverHadAHolderToo(t *testing.T) {
	s := newSite(t)
	s.acquire(bid("a", 1, 1))
	p := picture("a",
		jobs.Child{Queue: "q", State: jobs.ChildReady, PID: 7, Restarts: 2, LastExit: "exit status 3", ExitAgo: 90 * time.Second},
		jobs.Child{Queue: "mail", State: jobs.ChildParked, Detail: "no such command"})
	p.FailedReload = "queues.toml:3"
	s.shows(p, true)
	s.is("a web-a ready 7 2 exit status 3 90 queues.toml:3", childSQL, "q")
	s.is("a web-a parked no such command 0 queues.toml:3", childSQL, "mail")
	s.is("true", `select bool_and(seen_at between now() - interval '1 min' and now()) from queues`)
	s.is("true", `select supervisor is null and epoch = 0 from queues where queue = 'mail'`)

	s.shows(picture("a", jobs.Child{Queue: "q", State: jobs.ChildReady}, jobs.Child{Queue: "mail", State: jobs.ChildReady}), true)
	s.is("a web-a ready 0", childSQL, "q")
}

func TestSupervisorThatStandsByDoesNotTalkOverTheHolders(t *testing.T) {
	s := newSite(t)
	s.acquire(bid("a", 1, 1))
	s.shows(picture("a", jobs.Child{Queue: "q", State: jobs.ChildReady}), true)
	other := picture("b", jobs.Child{Queue: "q", State: jobs.ChildStandingBy})
	s.shows(other, true)
	s.is("a web-a ready 0", childSQL, "q")

	s.expire()
	s.shows(other, true)
	s.is("b web-b standing by 0", childSQL, "q")
	s.exec(`update queues set supervisor = null, expires_at = 'infinity'`)
	s.shows(picture("c", jobs.Child{Queue: "q", State: jobs.ChildParked}), true)
	s.is("c web-c parked 0", childSQL, "q")
}

// The row of a queue that works all the time is locked most of the time.
func TestLockedRowIsNotWaitedForAndToldLater(t *testing.T) {
	s := newSite(t)
	s.exec(`insert into queues (queue) values ('q'), ('mail')`)
	p := picture("a", jobs.Child{Queue: "q", State: jobs.ChildReady}, jobs.Child{Queue: "mail", State: jobs.ChildReady})
	tx, err := s.worker().Begin(ctx)
	finish(t, err)
	_, err = tx.Exec(ctx, `select from queues where queue = 'q' for update`)
	finish(t, err)
	s.exec(`set lock_timeout = '10s'`) // to fail rather than hang
	s.shows(p, false)
	s.is("", childSQL, "q")
	s.is("a web-a ready 0", childSQL, "mail")
	finish(t, tx.Rollback(ctx))
	s.shows(p, true)
	s.is("a web-a ready 0", childSQL, "q")
}

// Rows of queues are written all the time by those who work on them: not by us too.
func TestRowsAreWrittenWhenTheyChangeOrGetOld(t *testing.T) {
	s := newSite(t)
	children := []jobs.Child{{Queue: "a", State: jobs.ChildReady, LastExit: "exit status 3"}, {Queue: "b", State: jobs.ChildReady}}
	version := func() string {
		return column(t, s.look, `select string_agg(xmin::text, ' ' order by queue) from queues`)
	}
	s.shows(picture("a", children...), true)
	before := version()
	children[0].ExitAgo = time.Minute // grows by itself
	s.shows(picture("a", children...), true)
	if now := version(); now != before {
		t.Errorf("rows written = %s, want those of %s: nothing has changed", now, before)
	}
	children[1].State = jobs.ChildQuiet
	s.shows(picture("a", children...), true)
	first, _, _ := strings.Cut(before, " ")
	if now := version(); now == before || !strings.HasPrefix(now, first+" ") {
		t.Errorf("rows written = %s, want the second of %s changed and no other", now, before)
	}
	before = version()
	complete, err := jobs.Schema("").StorePicture(ctx, s.look, picture("a", children...), 0)
	if now := version(); err != nil || !complete || now == before {
		t.Errorf("rows of age 0 stored again = %v, %v, want all written", complete, err)
	}
}

func TestWhatIsNoLongerInThePictureIsTakenBack(t *testing.T) {
	s := newSite(t)
	s.shows(picture("b", jobs.Child{Queue: "others", State: jobs.ChildReady}), true)
	s.shows(picture("a", jobs.Child{Queue: "q", State: jobs.ChildReady}, jobs.Child{Queue: "mail", State: jobs.ChildReady}), true)
	s.exec(`insert into queues (queue, child_state, seen_at) values ('lost', 'ready', now() - interval '25 h'),
		('late', 'ready', now() - interval '23 h')`)
	s.shows(picture("a", jobs.Child{Queue: "q", State: jobs.ChildReady}), true)
	s.is("late others q", `select string_agg(queue, ' ' order by queue) from queues where child_state = 'ready'`)
	s.is("0", `select count(*) from queues where queue in ('mail', 'lost')
		and num_nonnulls(child_supervisor, child_host, child_state, child_detail, child_pid, restarts, last_exit, last_exit_at,
			failed_reload, seen_at) > 0`)
	s.shows(picture("a"), true)
	s.is("late others", `select string_agg(queue, ' ' order by queue) from queues where child_state = 'ready'`)
}

func TestTextOfAChildIsMadeFitToStore(t *testing.T) {
	s := newSite(t)
	s.shows(picture("a", jobs.Child{Queue: "q", Detail: "a\x00\xffé\n", LastExit: strings.Repeat("é", 1000)}), true)
	s.is("a\uFFFD\uFFFDé\n", `select child_detail from queues`)
	s.is(strings.Repeat("é", 299)+"…", `select last_exit from queues`)
}
