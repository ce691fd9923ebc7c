package jobs_test

import (
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"queuekeeper/jobs"
)

// life is a child as the database meets it: what it has claimed, started and has no acknowledged end for. It
// keeps to the protocol of a child; everything around it may break.
type life struct {
	*site
	supervisor string
	n, c       int
	on         *jobs.Acquired // under the last epoch it knows; nil: never acquired
	held       []jobs.Ref
	ended      []jobs.Ended // of held
	*ledger
}

// ledger is what has really happened to the attempts of jobs, whoever has heard of it.
type ledger struct {
	starts  map[jobs.Ref]int  // handlers started
	stopped map[jobs.Ref]bool // of these: ended by the child itself
}

func newLedger() *ledger { return &ledger{map[jobs.Ref]int{}, map[jobs.Ref]bool{}} }

// other is another child, at the beginning of its life.
func (l *life) other(supervisor string, n int) *life {
	return &life{site: l.site, supervisor: supervisor, n: n, ledger: l.ledger}
}

// late is the same child at this moment. What it does is done by an old connection: its replies reach nobody,
// so nothing is started because of them.
func (l *life) late() *life {
	old := *l
	old.ledger = &ledger{map[jobs.Ref]int{}, l.stopped}
	return &old
}

// audit writes down each end of an attempt, however it came to be.
func (s *site) audit() {
	s.Helper()
	s.exec(`
		create table ends (id bigint, attempt int, state text, excused bool);
		create function note_end() returns trigger language plpgsql as $$
		begin insert into ends values (old.id, old.attempts, new.state, new.excused > old.excused); return null; end $$;
		create trigger note_end after update on jobs for each row
			when (old.state = 'running' and new.state <> 'running') execute function note_end()`)
}

// acquire bids on a connection and, if it wins, gives up what it could not keep.
func (l *life) acquire(conn *pgx.Conn) error {
	l.c++
	b := bid(l.supervisor, l.n, l.c)
	b.Held = l.held
	if l.on != nil {
		b.Epoch = l.on.Epoch()
	}
	a, err := jobs.Schema("").Acquire(ctx, conn, "q", b)
	if err != nil {
		var other *jobs.HeldError
		if errors.As(err, &other) {
			l.keep(nil)
		}
		return err
	}
	l.on = a
	l.keep(a.Kept)
	return nil
}

// keep forgets every job but these.
func (l *life) keep(ids []int64) {
	l.held = slices.DeleteFunc(slices.Clone(l.held), func(r jobs.Ref) bool { return !slices.Contains(ids, r.ID) })
	l.ended = slices.DeleteFunc(slices.Clone(l.ended), func(e jobs.Ended) bool { return !slices.Contains(ids, e.ID) })
}

// step sends the outcomes there are and claims; what it gets it starts.
func (l *life) step(claim int) error {
	reply, err := l.on.Step(ctx, jobs.Step{Ended: l.ended, Claim: claim})
	if errors.Is(err, jobs.ErrLeaseLost) {
		l.keep(nil)
	}
	if err != nil {
		return err
	}
	if len(reply.Recorded) != len(l.ended) {
		l.Errorf("recorded %v of %v, want all", reply.Recorded, l.ended)
	}
	l.held = l.open()
	l.ended = nil
	for _, c := range reply.Claimed {
		l.starts[c.Ref()]++
		l.held = append(l.held, c.Ref())
	}
	return nil
}

// release gives back whatever has not ended.
func (l *life) release() error {
	for _, r := range l.open() {
		l.ends(r, jobs.KindExcused)
	}
	return l.on.Release(ctx, jobs.Step{Ended: l.ended}, jobs.LaneRates{})
}

// open are the held jobs whose handlers run.
func (l *life) open() []jobs.Ref {
	return slices.DeleteFunc(slices.Clone(l.held), func(r jobs.Ref) bool {
		return slices.ContainsFunc(l.ended, func(e jobs.Ended) bool { return e.Ref == r })
	})
}

// ends notes how the handler of a held job ended.
func (l *life) ends(r jobs.Ref, kind jobs.Kind) {
	l.stopped[r] = kind == jobs.KindExcused
	l.ended = append(l.ended, jobs.Ended{Ref: r, Kind: kind})
}

// finishAll works until nothing is left, as the child that holds the queue. It waits for no back-off.
func (l *life) finishAll() {
	l.Helper()
	for {
		l.exec(`update jobs set run_at = now() where state = 'pending'`)
		for _, r := range l.open() {
			l.ends(r, jobs.KindDone)
		}
		if err := l.step(10); err != nil {
			l.Fatalf("step to the end: %v", err)
		}
		if len(l.held) == 0 {
			return
		}
	}
}

// holds is what must be true of the rows as soon as l has acquired: what runs is what l holds, the rest waits or
// has ended, once.
func (l *life) holds() {
	l.Helper()
	slices.SortFunc(l.held, func(a, b jobs.Ref) int { return int(a.ID - b.ID) })
	want := ""
	for _, r := range l.held {
		want += fmt.Sprintf("%d/%d under %d ", r.ID, r.Attempt, l.on.Epoch())
	}
	l.is(want, `select coalesce(string_agg(format('%s/%s under %s ', id, attempts, epoch), '' order by id), '')
		from jobs where state = 'running'`)
	l.is("5 0", `select count(*) || ' ' || count(*) filter (where state not in ('pending', 'running', 'done')) from jobs`)
	l.is(fmt.Sprintf("%s/%d/%d", l.supervisor, l.n, l.c), `select holder from queues`)
}

// agrees is what must be true at the end: every job is done, and each attempt has ended once. Excused are those
// that nobody started or that their child stopped; all others were started.
func (l *life) agrees() {
	l.Helper()
	l.is("5", `select count(*) from jobs where state = 'done'`)
	l.is("5", `select count(*) from ends where state = 'done'`)
	l.is("true", `select sum(attempts) = (select count(*) from ends)
		and sum(attempts) = (select count(distinct (id, attempt)) from ends) from jobs`)
	rows, err := l.look.Query(ctx, `select id, attempt, excused from ends`)
	finish(l.T, err)
	var end jobs.Ref
	var excused bool
	_, err = pgx.ForEachRow(rows, []any{&end.ID, &end.Attempt, &excused}, func() error {
		started, stopped := l.starts[end], l.stopped[end]
		if excused && started > 0 && !stopped || !excused && started != 1 {
			l.Errorf("attempt %d of job %d: excused %v, started %d times, stopped %v", end.Attempt, end.ID, excused, started, stopped)
		}
		return nil
	})
	finish(l.T, err)
}

// racing is a queue held by a child of supervisor a, in the middle of everything: of its jobs one is done and one
// was stopped, of which Postgres has not heard, one runs, and two wait.
func (s *site) racing(conn *pgx.Conn) *life {
	s.Helper()
	s.exec(`truncate ends`)
	s.insert(5)
	a := &life{site: s, supervisor: "a", n: 1, ledger: newLedger()}
	finish(s.T, a.acquire(conn))
	finish(s.T, a.step(3))
	a.ends(a.held[0], jobs.KindDone)
	a.ends(a.held[1], jobs.KindExcused)
	return a
}

// operation is something a child says to Postgres.
type operation struct {
	name string
	do   func(l *life, conn *pgx.Conn) error
}

// operations are all of them.
var operations = []operation{
	{"acquire", (*life).acquire},
	{"step", func(l *life, _ *pgx.Conn) error { return l.step(5) }},
	{"release", func(l *life, _ *pgx.Conn) error { return l.release() }},
}
