package main

import (
	"context"
	"fmt"
	"slices"
	"syscall"
	"time"
)

// hangs says which rounds end with a child that is stopped for good: it takes 20 s to be found out.
func hangs(number int) bool { return number%10 == 0 }

// hangName is what happens then.
const hangName = "STOP of a child for good"

// stopForGood stops a child and waits until its supervisor has found out and killed it.
func (r *round) stopForGood(ctx context.Context) error {
	s, err := r.onlyOne(ctx)
	if err != nil {
		return err
	}
	e := &event{at: time.Since(r.began), kind: kind{name: hangName}}
	r.events = append(r.events, e)
	children, err := processes(s.place)
	children = slices.DeleteFunc(children, func(p process) bool { return p.queue == "" })
	if err != nil || len(children) == 0 {
		return err
	}
	p := children[r.number/10%len(children)]
	f := fault{queue: p.queue, kills: true, from: time.Now()}
	r.watch.disturbed(p.queue)
	r.watch.loses(p.queue, hangName)
	if !p.send(syscall.SIGSTOP) {
		return nil
	}
	r.hits[hangName]++
	e.happened = fmt.Sprintf("%s, child %d of %s", p.queue, p.Pid, s.name())
	s.unclean[p.queue] = true
	err = until(ctx, func() error {
		if mark(p.Pid) != "" {
			return fmt.Errorf("child %d of queue %s, stopped for good, is not killed", p.Pid, p.queue)
		}
		return nil
	})
	r.note(f, soon)
	return err
}

// onlyOne has all supervisors leave but one: another would take the queue over when the lease of the stopped child
// runs out, and its commands, which nobody has stopped, would still be there.
func (r *round) onlyOne(ctx context.Context) (*supervisor, error) {
	serving := r.those((*supervisor).serving)
	only := serving[0]
	for _, s := range serving[1:] {
		s.told = true
		s.send(syscall.SIGTERM)
	}
	return only, until(ctx, func() error {
		all, err := processes(r.folder)
		for _, p := range all {
			if p.of != only.number {
				return fmt.Errorf("process %d of supervisor %d does not leave", p.Pid, p.of)
			}
		}
		return err
	})
}
