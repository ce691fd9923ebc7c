package main

import (
	"context"
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"queuekeeper/internal/tryout"
)

// wayOut is how the supervisors of a round are told to leave.
type wayOut struct {
	name    string
	signals []syscall.Signal
	all     bool // every process gets them
	cuts    bool // what runs does not finish
	hurries bool // nor does it where the supervisor was told before
}

var waysOut = []wayOut{
	{name: "TERM", signals: []syscall.Signal{syscall.SIGTERM}},
	{name: "INT", signals: []syscall.Signal{syscall.SIGINT}, hurries: true},
	{name: "INT twice", signals: []syscall.Signal{syscall.SIGINT, syscall.SIGINT}, cuts: true},
	{name: "QUIT", signals: []syscall.Signal{syscall.SIGQUIT}, cuts: true},
	{name: "TERM five times", signals: slices.Repeat([]syscall.Signal{syscall.SIGTERM}, 5)},
	{name: "HUP, TERM and HUP", signals: []syscall.Signal{syscall.SIGHUP, syscall.SIGTERM, syscall.SIGHUP}},
	{name: "TERM to every process", signals: []syscall.Signal{syscall.SIGTERM}, all: true},
}

// apart is how long after one signal the next comes.
const apart = 20 * time.Millisecond

// leave tells all supervisors to go, and looks at what they leave.
func (r *round) leave(ctx context.Context) error {
	f := fault{queue: everyQueue, commands: r.way.all, kills: r.way.all, from: time.Now()}
	leaving := r.those((*supervisor).alive)
	cuts := r.way.cuts || r.way.hurries && slices.ContainsFunc(leaving, func(s *supervisor) bool { return s.told })
	for _, sig := range r.way.signals {
		if err := r.tell(leaving, sig); err != nil {
			return err
		}
		tryout.Pause(ctx, apart)
	}
	if cuts || r.way.all {
		r.note(f, late)
	}
	if err := r.gone(ctx, leaving); err != nil {
		return err
	}
	return r.look(ctx)
}

func (r *round) tell(leaving []*supervisor, sig syscall.Signal) error {
	for _, s := range leaving {
		s.told = true
		s.send(sig)
	}
	if !r.way.all {
		return nil
	}
	all, err := processes(r.folder)
	for _, p := range all {
		p.send(sig)
	}
	return err
}

// gone waits until no process is left. What a killed supervisor has left behind leaves by itself.
func (r *round) gone(ctx context.Context, leaving []*supervisor) error {
	enough := time.NewTimer(shutdownTimeout + patience/2)
	defer enough.Stop()
	for _, s := range leaving {
		select {
		case <-s.ended:
		case <-ctx.Done():
			return ctx.Err()
		case <-enough.C:
			return fmt.Errorf("%s is still there long after it was told to leave", s.name())
		}
	}
	r.later.Wait()
	return until(ctx, func() error {
		left, err := processes(r.folder)
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("process %d (%s) of supervisor %d is left", left[0].Pid, left[0].what(), left[0].of)
		}
		return err
	})
}

// standing is what the tables say of a queue when nothing runs.
type standing struct {
	queue, supervisor string
	running           int
}

const standingSQL = `
select q.queue, coalesce(q.supervisor, ''), (select count(*) from jobs j where j.queue = q.queue and j.state = 'running')
from queues q
order by q.queue`

// look judges the supervisors that have ended, and what they have left in the tables.
func (r *round) look(ctx context.Context) error {
	mayRemain := map[string]bool{} // by the supervisor's id
	for _, s := range r.supervisors {
		may, err := s.judge()
		if err != nil {
			r.faultf("%w", err)
		}
		if may && !s.killed {
			r.remained++
		}
		mayRemain[s.id] = may
	}
	all, err := r.standings(ctx)
	for _, q := range all {
		switch {
		case q.supervisor == "" && q.running > 0:
			r.faultf("queue %s: %d jobs count as running, and nobody holds it", q.queue, q.running)
		case q.supervisor != "" && !mayRemain[q.supervisor]:
			r.faultf("queue %s is held by a supervisor that ended with status 0", q.queue)
		}
	}
	return err
}

func (r *round) standings(ctx context.Context) (all []standing, err error) {
	err = r.db.do(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, standingSQL)
		if err != nil {
			return err
		}
		all, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (s standing, err error) {
			return s, row.Scan(&s.queue, &s.supervisor, &s.running)
		})
		return err
	})
	return all, err
}

// What failed is not waited for: that back-offs are kept is not the question here.
const hurrySQL = `update jobs set run_at = now() where state = 'pending' and run_at > now()`

const leftSQL = `select count(*) from jobs where state in ('pending', 'running')`

// finish starts the program once more, lets it do all that is left, and stops it.
func (r *round) finish(ctx context.Context) error {
	r.settings = map[string]setting{}
	if err := r.writeFile(); err != nil {
		return err
	}
	err := r.db.do(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, hurrySQL)
		return err
	})
	if err != nil {
		return err
	}
	s, err := r.start(ctx)
	if err != nil {
		return err
	}
	if err := r.empty(ctx, s); err != nil {
		return err
	}
	s.told = true
	s.send(syscall.SIGTERM)
	if err := r.gone(ctx, []*supervisor{s}); err != nil {
		return err
	}
	mayRemain, err := s.judge()
	if err != nil {
		r.faultf("%w", err)
	} else if mayRemain {
		r.faultf("%s ended with status 1 though nothing had happened to it", s.name())
	}
	all, err := r.standings(ctx)
	for _, q := range all {
		if q.supervisor != "" || q.running > 0 {
			r.faultf("queue %s at the end: got holder %q and %d jobs that count as running, want none", q.queue, q.supervisor, q.running)
		}
	}
	return err
}

// empty waits until there is nothing left to do.
func (r *round) empty(ctx context.Context, s *supervisor) error {
	return until(ctx, func() error {
		left, err := value[int](ctx, &r.db, leftSQL)
		switch {
		case err != nil:
			return err
		case left > 0 && !s.alive():
			return fmt.Errorf("%s ended by itself: %v", s.name(), s.cmd.ProcessState)
		case left > 0:
			return fmt.Errorf("%d jobs are left undone though the program has run in peace for %v", left, patience)
		}
		return nil
	})
}

// clean ends whatever a round that failed has left.
func (r *round) clean() error {
	r.later.Wait()
	r.db.close()
	return until(context.Background(), func() error {
		all, err := processes(r.folder)
		for _, p := range all {
			p.send(syscall.SIGKILL)
			err = fmt.Errorf("process %d cannot be ended", p.Pid)
		}
		return err
	})
}
