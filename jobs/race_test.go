package jobs_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"queuekeeper/internal/eventually"
	"queuekeeper/internal/testdb"
	"queuekeeper/jobs"
)

// gate locks the row of the queue, so that operations line up behind it in an order the test decides.
type gate struct {
	*site
	tx      pgx.Tx
	waiting int
}

func (s *site) gate() *gate {
	s.Helper()
	tx, err := testdb.Connect(s.T, s.url).Begin(ctx)
	finish(s.T, err)
	_, err = tx.Exec(ctx, `select from queues for update`)
	finish(s.T, err)
	return &gate{site: s, tx: tx}
}

// queue starts an operation and returns when its session waits for the row.
func (g *gate) queue(do func() error) <-chan error {
	g.Helper()
	ended := make(chan error, 1)
	go func() { ended <- do() }()
	g.waiting++
	eventually.OK(g.T, 10*time.Second, func() error {
		got := column(g.T, g.look, `select count(*) from pg_stat_activity
			where datname = current_database() and cardinality(pg_blocking_pids(pid)) > 0`)
		if want := fmt.Sprint(g.waiting); got != want {
			return fmt.Errorf("%s sessions wait, want %s", got, want)
		}
		return nil
	})
	return ended
}

func (g *gate) open() {
	g.Helper()
	finish(g.T, g.tx.Commit(ctx))
}

// rivals are those who may ask for a queue while the last word of its holder is still on its way.
var rivals = []struct {
	name string
	make func(a *life) (old, rival *life)
	// yields: to an acquire and a Step of a that came first, the rival must yield.
	yields bool
}{
	{name: "another supervisor", yields: true, make: func(a *life) (*life, *life) {
		a.expire()
		return a, a.other("b", 1)
	}},
	{name: "the next child", make: func(a *life) (*life, *life) {
		return a, a.other("a", 2)
	}},
	{name: "the next connection of the child", make: func(a *life) (*life, *life) {
		old := a.late()
		a.c++ // the late one took that number
		return old, a
	}},
}

// The holder's last word and a rival's acquire wait for the row of the queue, in either order. One of them holds
// the queue then, and no job is lost, stuck or done twice.
func TestWhoeverComesFirstNothingIsLostOrDoneTwice(t *testing.T) {
	s := newSite(t)
	s.audit()
	for _, last := range operations {
		for _, r := range rivals {
			s.each(last.name+" before "+r.name, func(s *site) {
				conn := s.worker()
				a := s.racing(conn)
				old, rival := r.make(a)
				g, rivalConn := s.gate(), s.worker()
				ours := g.queue(func() error { return last.do(old, conn) })
				theirs := g.queue(func() error { return rival.acquire(rivalConn) })
				g.open()
				finish(s.T, <-ours)
				err := <-theirs
				if refused := isHeld(err); refused != (r.yields && last.name != "release") || err != nil && !refused {
					s.Errorf("acquire of %s: %v", r.name, err)
				}
				if err != nil {
					rival = old
				}
				rival.holds()
				rival.finishAll()
				rival.agrees()
			})
			s.each(r.name+" before "+last.name, func(s *site) {
				conn := s.worker()
				a := s.racing(conn)
				old, rival := r.make(a)
				g, rivalConn := s.gate(), s.worker()
				theirs := g.queue(func() error { return rival.acquire(rivalConn) })
				ours := g.queue(func() error { return last.do(old, conn) })
				g.open()
				finish(s.T, <-theirs)
				if err := <-ours; isHeld(err) != (last.name == "acquire") || errors.Is(err, jobs.ErrLeaseLost) != (last.name != "acquire") {
					s.Errorf("%s after it was taken over: %v, want it fenced", last.name, err)
				}
				s.is("0", `select count(*) from ends where state = 'done'`) // nothing of what it said
				rival.holds()
				rival.finishAll()
				rival.agrees()
			})
		}
	}
}

func isHeld(err error) bool {
	var held *jobs.HeldError
	return errors.As(err, &held)
}

// There is no row to wait for yet.
func TestOneOfManyGetsANewQueue(t *testing.T) {
	s := newSite(t)
	const many = 8
	answers := make(chan error, many)
	for i := range many {
		conn := s.worker()
		go func() {
			_, err := jobs.Schema("").Acquire(ctx, conn, "q", bid(fmt.Sprint(i), 1, 1))
			answers <- err
		}()
	}
	got := 0
	for range many {
		if err := <-answers; err == nil {
			got++
		} else if !isHeld(err) {
			t.Error(err)
		}
	}
	if got != 1 {
		t.Errorf("%d of %d hold the queue, want 1", got, many)
	}
	s.is("1", `select epoch from queues`)
}
