package main

import (
	"context"
	"fmt"
	"slices"
	"syscall"
	"time"

	"queuekeeper/internal/tryout"
)

// kind is what can happen.
type kind struct {
	name   string
	weight int // how often, beside the others
	// do makes it happen, and says to whom; "": there was nobody.
	do func(*round, context.Context, *event) (hit string, err error)
}

// longestStop is far from what costs a lease, or makes a child count as hung.
const longestStop = 1500 * time.Millisecond

var kinds = []kind{
	{"KILL of a child", 6, killsChild(syscall.SIGKILL)},
	{"SEGV of a child", 3, killsChild(syscall.SIGSEGV)},
	{"STOP of a child", 3, stopChild},
	{"TERM to a child", 2, childLeaves(syscall.SIGTERM)},
	{"QUIT to a child", 2, childLeaves(syscall.SIGQUIT)},
	{"HUP to a child", 1, signalsChild(syscall.SIGHUP)},
	{"INT to a child", 1, signalsChild(syscall.SIGINT)},
	{"USR1 to a child", 1, signalsChild(syscall.SIGUSR1)},
	{"cut of a connection", 3, cutConnection},
	{"KILL of a supervisor", 2, killSupervisor},
	{"KILL of everything", 2, killEverything},
	{"STOP of a supervisor", 2, stopSupervisor},
	{"TERM and a new supervisor", 2, replaceSupervisor},
	{"one more supervisor", 2, oneMoreSupervisor},
	{"HUP after a changed file", 3, changeFile},
	{"USR1 to a supervisor", 1, showStatus},
	{"USR2, then HUP", 2, beQuiet},
	{"restart of Postgres", 1, restartPostgres},
}

// child is the one an event is about: of its queue, of any supervisor, dead or alive.
func (r *round) child(e *event) (p process, found bool, err error) {
	all, err := processes(r.folder)
	if err != nil {
		return process{}, false, err
	}
	all = slices.DeleteFunc(all, func(p process) bool { return p.queue != r.queue(e).name })
	if len(all) == 0 {
		return process{}, false, nil
	}
	return all[e.pick/len(r.queues)%len(all)], true, nil
}

func (r *round) signalChild(e *event, sig syscall.Signal) (p process, hit string, err error) {
	p, found, err := r.child(e)
	if err == nil && found && p.send(sig) {
		hit = fmt.Sprintf("%s, child %d of supervisor %d", p.queue, p.Pid, p.of)
	}
	return p, hit, err
}

func signalsChild(sig syscall.Signal) func(*round, context.Context, *event) (string, error) {
	return func(r *round, _ context.Context, e *event) (string, error) {
		_, hit, err := r.signalChild(e, sig)
		return hit, err
	}
}

// killsChild ends a child that can do nothing about it. What it has in hand runs again.
func killsChild(sig syscall.Signal) func(*round, context.Context, *event) (string, error) {
	return func(r *round, _ context.Context, e *event) (string, error) {
		p, found, err := r.child(e)
		if err != nil || !found {
			return "", err
		}
		s := r.supervisors[p.of-1]
		r.watch.disturbed(p.queue)
		if r.watch.holder(p.queue).pid == p.Pid && s.quick(p.queue) {
			r.watch.loses(p.queue, e.kind.name)
		}
		f := fault{queue: p.queue, kills: true, from: time.Now()}
		if !p.send(sig) {
			return "", nil
		}
		s.failures[p.queue]++
		s.unclean[p.queue] = true
		r.note(f, soon)
		return fmt.Sprintf("%s, child %d of supervisor %d", p.queue, p.Pid, p.of), nil
	}
}

// childLeaves has a child drain, and what it has in hand finishes, or stop, and it is ended.
func childLeaves(sig syscall.Signal) func(*round, context.Context, *event) (string, error) {
	return func(r *round, _ context.Context, e *event) (string, error) {
		began := time.Now()
		p, hit, err := r.signalChild(e, sig)
		if hit == "" {
			return "", err
		}
		r.watch.disturbed(p.queue)
		r.supervisors[p.of-1].failures[p.queue]++
		if sig == syscall.SIGQUIT {
			r.note(fault{queue: p.queue, from: began}, late)
		}
		return hit, nil
	}
}

func stopChild(r *round, _ context.Context, e *event) (string, error) {
	p, hit, err := r.signalChild(e, syscall.SIGSTOP)
	if hit == "" {
		return "", err
	}
	r.watch.disturbed(p.queue)
	r.continueLater(p, e.lasts)
	return fmt.Sprintf("%s, for %.3f s", hit, e.lasts.Seconds()), nil
}

// continueLater ends a stop.
func (r *round) continueLater(p process, after time.Duration) {
	r.later.Go(func() {
		tryout.Pause(context.Background(), after)
		p.send(syscall.SIGCONT)
	})
}

const cutSQL = `
select count(pg_terminate_backend(pid))
from pg_stat_activity
where application_name = 'queuekeeper ' || $1 and datname = current_database()`

func cutConnection(r *round, ctx context.Context, e *event) (string, error) {
	q := r.queue(e).name
	r.watch.disturbed(q)
	n, err := value[int](ctx, &r.db, cutSQL, q)
	if n == 0 {
		return "", err
	}
	return fmt.Sprintf("%s, %d of them", q, n), err
}

// restartPostgres is a crash of it. It comes back while other things happen.
func restartPostgres(r *round, ctx context.Context, e *event) (string, error) {
	r.watch.disturbed(everyQueue)
	r.watch.blind(true)
	r.repairs.Go(func() {
		defer r.watch.blind(false)
		if err := r.chaos.restartPostgres(ctx, e.lasts/4); err != nil {
			r.faultf("restart Postgres: %w", err)
		}
	})
	return "everybody", nil
}

func (c *chaos) restartPostgres(ctx context.Context, away time.Duration) error {
	c.restarting.Lock() // one at a time: halt, then resume
	defer c.restarting.Unlock()
	if err := c.postgres.Halt(ctx); err != nil {
		return err
	}
	tryout.Pause(ctx, away)
	return c.postgres.Resume(ctx)
}
