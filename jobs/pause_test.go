package jobs_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"queuekeeper/internal/testdb"
	"queuekeeper/jobs"
)

// What the interface is for.
var (
	_ jobs.Beginner = (*pgx.Conn)(nil)
	_ jobs.Beginner = (*pgxpool.Pool)(nil)
	_ jobs.Beginner = (pgx.Tx)(nil)
)

func (s *site) pause(lane string, howLong time.Duration, reason string) jobs.Paused {
	s.Helper()
	p, err := jobs.Schema("").Pause(ctx, s.look, "q", lane, howLong, reason)
	finish(s.T, err)
	return p
}

func (s *site) resume(lane string) jobs.Resumed {
	s.Helper()
	r, err := jobs.Schema("").Resume(ctx, s.look, "q", lane)
	finish(s.T, err)
	return r
}

// shownPause is a pause as a test says it: to the minute.
func shownPause(p jobs.Pause) string {
	switch {
	case !p.Holds():
		return "none"
	case !p.HasEnd():
		return "no end " + p.Reason
	}
	return fmt.Sprint(p.For.Round(time.Minute), " ", p.Reason)
}

// Of a queue and of a lane alike, through every order of shorter, longer and endless.
func TestAPauseIsNeverShortenedByAnother(t *testing.T) {
	s := newSite(t)
	for _, lane := range []string{"", "Ä lane"} {
		for _, c := range []struct {
			howLong time.Duration
			reason  string
			want    string
			kept    bool
		}{
			{time.Hour, "a", "1h0m0s a", false},
			{time.Minute, "b", "1h0m0s a", true},
			{2 * time.Hour, "", "2h0m0s a", false}, // longer, for the same reason
			{3 * time.Hour, "c", "3h0m0s c", false},
			{0, "d", "no end d", false},
			{time.Hour, "e", "no end d", true},
			{0, "f", "no end d", true},
		} {
			got := s.pause(lane, c.howLong, c.reason)
			if shownPause(got.Pause) != c.want || got.Kept != c.kept {
				t.Errorf("lane %q: pause of %v, %s: %s, kept %v; want %s, kept %v",
					lane, c.howLong, c.reason, shownPause(got.Pause), got.Kept, c.want, c.kept)
			}
		}
	}
	s.is("infinity", `select lanes_paused_until from queues`)
	// One that is over does not count, nor does its reason.
	s.exec(`update queues set paused_until = now() - interval '1 s'`)
	s.exec(`update lanes set paused_until = now() - interval '1 s'`)
	for _, lane := range []string{"", "Ä lane"} {
		if got := s.pause(lane, time.Minute, ""); shownPause(got.Pause) != "1m0s " || got.Kept {
			t.Errorf("lane %q, after one that is over: %s, kept %v; want 1m0s and no reason", lane, shownPause(got.Pause), got.Kept)
		}
	}
}

func TestResumeOfAQueueLiftsItsPauseAndThoseOfItsLanes(t *testing.T) {
	s := newSite(t)
	s.pause("", time.Hour, "maintenance")
	s.pause("a", time.Hour, "one")
	s.pause("b", 0, "two")
	s.exec(`insert into lanes (queue, lane, paused_until) values ('q', 'over', now() - interval '1 s'), ('other', 'a', 'infinity')`)
	r := s.resume("")
	if shownPause(r.Was) != "1h0m0s maintenance" || r.Lanes != 2 {
		t.Errorf("lifted %s and %d lanes, want 1h0m0s maintenance and 2", shownPause(r.Was), r.Lanes)
	}
	s.is("t null t", `select concat_ws(' ', paused_until <= now(), coalesce(pause_reason, 'null'), lanes_paused_until <= now()) from queues`)
	s.is("other a", `select string_agg(concat_ws(' ', queue, lane), ', ') from lanes where paused_until > now() or pause_reason is not null`)
	if again := s.resume(""); again.Was.Holds() || again.Lanes != 0 {
		t.Errorf("again: lifted %+v, want nothing", again)
	}
}

func TestResumeOfALaneLiftsThatOneOnly(t *testing.T) {
	s := newSite(t)
	s.pause("a", 0, "one")
	s.pause("b", time.Hour, "two")
	s.pause("", 2*time.Hour, "all")
	r := s.resume("a")
	if shownPause(r.Was) != "no end one" || shownPause(r.Still) != "2h0m0s all" || r.Lanes != 0 {
		t.Errorf("lifted %s, the queue %s, %d lanes; want no end one, the queue 2h0m0s all, none", shownPause(r.Was), shownPause(r.Still), r.Lanes)
	}
	s.is("b", `select string_agg(lane, ' ') from lanes where paused_until > now()`)
	s.is("true", `select lanes_paused_until = (select max(paused_until) from lanes) and lanes_paused_until < 'infinity' from queues`)
	if r = s.resume("no such lane"); r.Was.Holds() {
		t.Errorf("lane that has no pause: lifted %s, want none", shownPause(r.Was))
	}
	s.is("true", `select paused_until > now() from queues`)
}

func TestNothingIsClaimedInAPauseAndAllAfterIt(t *testing.T) {
	s := newSite(t)
	s.insert(3)
	a := s.acquire(bid("a", 1, 1))
	s.pause("", 0, "")
	same(t, "claimed in the pause", ids(s.claim(a, 3)), []int64{})
	s.resume("")
	same(t, "claimed after it", ids(s.claim(a, 3)), []int64{1, 2, 3})
}

// The operators line up behind a Step that has the row of the queue.
func TestPausesThatWaitForEachOtherLeaveTheLaterOne(t *testing.T) {
	s := newSite(t)
	for _, lane := range []string{"", "a"} {
		for _, c := range []struct{ first, second time.Duration }{{time.Minute, time.Hour}, {time.Hour, time.Minute}, {0, time.Minute}} {
			s.each(fmt.Sprint(lane, " ", c.first, " before ", c.second), func(s *site) {
				s.exec(`truncate lanes`)
				s.exec(`insert into queues (queue) values ('q')`)
				g := s.gate()
				one := g.queue(s.pauses(lane, c.first, "first"))
				two := g.queue(s.pauses(lane, c.second, "second"))
				g.open()
				finish(s.T, errors.Join(<-one, <-two))
				want := fmt.Sprint(max(c.first, c.second).Round(time.Minute), " second")
				if c.first == time.Hour {
					want = "1h0m0s first"
				} else if c.first == 0 {
					want = "no end first"
				}
				if got := shownPause(s.resume(lane).Was); got != want {
					s.Errorf("pause = %s, want %s", got, want)
				}
			})
		}
	}
}

// pauses is a pause on a connection of its own.
func (s *site) pauses(lane string, howLong time.Duration, reason string) func() error {
	conn := testdb.Connect(s.T, s.url)
	return func() error {
		_, err := jobs.Schema("").Pause(ctx, conn, "q", lane, howLong, reason)
		return err
	}
}

// What resume sees of the lanes must not be older than its turn at the row of the queue.
func TestResumeLiftsALanePauseThatCameJustBeforeIt(t *testing.T) {
	s := newSite(t)
	for _, lane := range []string{"", "a"} {
		s.each("resume of "+lane, func(s *site) {
			s.exec(`truncate lanes`)
			s.exec(`insert into queues (queue) values ('q')`)
			conn, g := testdb.Connect(s.T, s.url), s.gate()
			paused := g.queue(s.pauses("a", time.Hour, ""))
			resumed := g.queue(func() error {
				_, err := jobs.Schema("").Resume(ctx, conn, "q", lane)
				return err
			})
			g.open()
			finish(s.T, errors.Join(<-paused, <-resumed))
			s.is("0", `select count(*) from lanes where paused_until > now()`)
			s.is("true", `select lanes_paused_until <= now() from queues`)
		})
	}
}

// There is no row to wait for yet.
func TestPausesOfANewQueueAtOnceLeaveTheLatest(t *testing.T) {
	s := newSite(t)
	const many = 8
	answers := make(chan error, many)
	for i := range many {
		do := s.pauses("", time.Duration(i+1)*time.Hour, fmt.Sprint(i+1))
		go func() { answers <- do() }()
	}
	for range many {
		finish(t, <-answers)
	}
	if got := shownPause(s.resume("").Was); got != "8h0m0s 8" {
		t.Errorf("pause = %s, want 8h0m0s 8", got)
	}
}

func TestPauseAndResumeTellTheWorkerWhenTheyCommit(t *testing.T) {
	s := newSite(t)
	listener := listen(t, s.url, "q")
	tx, err := s.look.Begin(ctx)
	finish(t, err)
	_, err = jobs.Schema("").Pause(ctx, tx, "q", "", time.Hour, "")
	finish(t, err)
	finish(t, tx.Rollback(ctx))
	s.is("0", `select count(*) from queues`)
	s.exec(`notify jobs_q, 'nothing before'`)
	wantPayload(t, listener, "nothing before")
	s.pause("", time.Hour, "")
	wantPayload(t, listener, "pause")
	s.resume("a")
	wantPayload(t, listener, "pause")
	s.pause("a", time.Hour, "")
	wantPayload(t, listener, "pause")
	s.resume("")
	wantPayload(t, listener, "pause")
}

// A default of the role or the database must not let it look at lanes of before its turn; a transaction of the caller
// that does so is refused.
func TestPauseIsReadCommittedWhateverTheDefault(t *testing.T) {
	s := newSite(t)
	s.exec(`set default_transaction_isolation = 'repeatable read'`)
	s.pause("a", time.Hour, "")
	s.resume("")
	tx, err := s.look.Begin(ctx)
	finish(t, err)
	defer tx.Rollback(ctx)
	if _, err := jobs.Schema("").Resume(ctx, tx, "q", ""); err == nil || !strings.Contains(err.Error(), "25001") {
		t.Errorf("in a transaction that is repeatable read: error %v, want one of Postgres (25001)", err)
	}
}

func TestAPauseOfAQueueNobodyKnowsIsTold(t *testing.T) {
	s := newSite(t)
	s.exec(`insert into queues (queue, epoch) values ('worked', 1), ('seen', 0)`)
	s.exec(`insert into jobs (queue, name, state, epoch) values ('pending', 'Do', 'pending', null), ('running', 'Do', 'running', 1),
		('done', 'Do', 'done', null), ('dead', 'Do', 'dead', null)`)
	unknown := map[string]bool{
		"worked": false, "pending": false, "running": false, "done": false, "dead": false, "seen": true, "wrokd": true,
	}
	for queue, want := range unknown {
		r, err := jobs.Schema("").Resume(ctx, s.look, queue, "")
		finish(t, err)
		if r.Unknown != want {
			t.Errorf("resume queue %s: unknown %v, want %v", queue, r.Unknown, want)
		}
	}
	s.is("2", `select count(*) from queues`) // none was made
	for queue, want := range unknown {
		p, err := jobs.Schema("").Pause(ctx, s.look, queue, "a", time.Hour, "")
		finish(t, err)
		if p.Unknown != want {
			t.Errorf("pause queue %s: unknown %v, want %v", queue, p.Unknown, want)
		}
	}
	s.is("7", `select count(*) from queues`)
}

func TestAReasonIsCutAndStored(t *testing.T) {
	s := newSite(t)
	for reason, want := range map[string]string{
		"a\x00b\xff":                   "a\uFFFDb\uFFFD",
		strings.Repeat("ä", 500):       strings.Repeat("ä", 500),
		"x" + strings.Repeat("ä", 500): "x" + strings.Repeat("ä", 498) + "…",
	} {
		got := s.pause("", time.Hour, reason)
		if got.Reason != want || len(got.Reason) > 1000 {
			t.Errorf("reason = %q, want %q", got.Reason, want)
		}
		s.resume("")
	}
}

func TestPauseRefusesWhatCannotBe(t *testing.T) {
	conn := testdb.Connect(t, testdb.New(t))
	for _, c := range []struct {
		queue, lane string
		howLong     time.Duration
		want        string
	}{
		{"Q", "", 0, `pause: queue "Q": must be`},
		{"q", "a\x00", 0, `pause: lane "a\x00": contains NUL`},
		{"q", "\xff", 0, `pause: lane "\xff": not valid UTF-8`},
		{"q", strings.Repeat("a", 256), 0, `: has 256 bytes; the limit is 255`},
		{"q", "", -1, `pause: pause of -1ns: must not be negative`},
	} {
		_, err := jobs.Schema("").Pause(ctx, conn, c.queue, c.lane, c.howLong, "")
		if !errors.Is(err, jobs.ErrInvalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("pause %q, %q, %v: error %v, want an ErrInvalid with %s", c.queue, c.lane, c.howLong, err, c.want)
		}
		_, err = jobs.Schema("").Resume(ctx, conn, c.queue, c.lane)
		if (c.howLong == 0) != errors.Is(err, jobs.ErrInvalid) {
			t.Errorf("resume %q, %q: error %v, want an ErrInvalid: %v", c.queue, c.lane, err, c.howLong == 0)
		}
	}
}

func TestPauseInASchemaOfItsOwnAndInEveryQueryMode(t *testing.T) {
	url := testdb.New(t)
	exec(t, testdb.Connect(t, url), `alter schema public rename to "my jobs"`)
	for mode := pgx.QueryExecModeCacheStatement; mode <= pgx.QueryExecModeSimpleProtocol; mode++ {
		config, err := pgx.ParseConfig(url)
		finish(t, err)
		config.DefaultQueryExecMode = mode
		conn, err := pgx.ConnectConfig(ctx, config)
		finish(t, err)
		defer conn.Close(ctx)
		for _, lane := range []string{"", "it's"} {
			if _, err := jobs.Schema("my jobs").Pause(ctx, conn, "q", lane, time.Hour, "it's"); err != nil {
				t.Errorf("pause in mode %s: %v", mode, err)
			}
			r, err := jobs.Schema("my jobs").Resume(ctx, conn, "q", lane)
			if err != nil || shownPause(r.Was) != "1h0m0s it's" {
				t.Errorf("resume in mode %s: %s, %v; want 1h0m0s it's", mode, shownPause(r.Was), err)
			}
		}
	}
}
