package main

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"queuekeeper/internal/tryout"
)

// What happens to supervisors. Those that need one that serves find it: there always is one.

func (r *round) one(e *event, of []*supervisor) *supervisor { return of[e.pick%len(of)] }

// killSupervisor is any that lives, one that is leaving too. Its children finish what they have, and leave.
func killSupervisor(r *round, ctx context.Context, e *event) (string, error) {
	s := r.one(e, r.those((*supervisor).alive))
	r.watch.disturbed(everyQueue)
	for _, q := range r.queues {
		if r.watch.holder(q.name).supervisor == s.id {
			r.watch.loses(q.name, e.kind.name)
		}
	}
	s.kill()
	_, err := r.start(ctx)
	return s.name(), err
}

// killEverything leaves the commands of the jobs, as somebody does who kills by name.
func killEverything(r *round, ctx context.Context, e *event) (string, error) {
	r.watch.disturbed(everyQueue)
	for _, q := range r.queues {
		r.watch.loses(q.name, e.kind.name)
	}
	f := fault{queue: everyQueue, kills: true, from: time.Now()}
	for _, s := range r.those((*supervisor).alive) {
		s.kill()
	}
	all, err := processes(r.folder)
	if err != nil {
		return "", err
	}
	for _, p := range all {
		if p.queue != "" {
			p.send(syscall.SIGKILL)
		}
	}
	r.note(f, soon)
	_, err = r.start(ctx)
	return fmt.Sprintf("%d processes", len(all)), err
}

func stopSupervisor(r *round, _ context.Context, e *event) (string, error) {
	s := r.one(e, r.those((*supervisor).serving))
	r.watch.disturbed(everyQueue)
	if !s.send(syscall.SIGSTOP) {
		return "", nil
	}
	s.stopped = time.Now().Add(e.lasts)
	r.continueLater(process{Process: s.cmd.Process}, e.lasts)
	return fmt.Sprintf("%s, for %.3f s", s.name(), e.lasts.Seconds()), nil
}

// replaceSupervisor is a deploy: the new one comes while the old one leaves.
func replaceSupervisor(r *round, ctx context.Context, e *event) (string, error) {
	s := r.one(e, r.those((*supervisor).serving))
	r.watch.disturbed(everyQueue)
	s.told = true
	if !s.send(syscall.SIGTERM) {
		return "", nil
	}
	next, err := r.start(ctx)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s, then %s", s.name(), next.name()), nil
}

// mostSupervisors is how many there are at a time.
const mostSupervisors = 3

func oneMoreSupervisor(r *round, ctx context.Context, _ *event) (string, error) {
	if len(r.those((*supervisor).alive)) >= mostSupervisors {
		return "", nil
	}
	s, err := r.start(ctx)
	if err != nil {
		return "", err
	}
	return s.name(), nil
}

// changeFile has one supervisor take on a file that differs in one queue.
func changeFile(r *round, _ context.Context, e *event) (string, error) {
	q := r.queue(e).name
	r.watch.disturbed(q)
	now := r.settings[q]
	how := now.change(e.pick)
	r.settings[q] = now
	if err := r.writeFile(); err != nil {
		return "", err
	}
	s := r.one(e, r.those((*supervisor).serving))
	if !s.send(syscall.SIGHUP) {
		return "", nil
	}
	return fmt.Sprintf("%s: %s %s", s.name(), q, how), nil
}

func showStatus(r *round, _ context.Context, e *event) (string, error) {
	s := r.one(e, r.those((*supervisor).serving))
	if !s.send(syscall.SIGUSR1) {
		return "", nil
	}
	return s.name(), nil
}

func beQuiet(r *round, _ context.Context, e *event) (string, error) {
	s := r.one(e, r.those((*supervisor).serving))
	if !s.send(syscall.SIGUSR2) {
		return "", nil
	}
	r.later.Go(func() {
		tryout.Pause(context.Background(), e.lasts/2)
		s.send(syscall.SIGHUP)
	})
	return fmt.Sprintf("%s, for %.3f s", s.name(), (e.lasts / 2).Seconds()), nil
}
