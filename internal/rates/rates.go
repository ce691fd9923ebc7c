package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"
)

// showRates plays all phases, one after the other.
func showRates(ctx context.Context, r *rig) ([]section, error) {
	phases, left := chosen(r.short, r.nginx != nil)
	s := section{title: "Rates", head: ratesHead}
	for _, p := range phases {
		fmt.Fprintln(os.Stderr, p)
		verdicts, err := r.playPhase(ctx, p)
		if err != nil {
			return nil, fmt.Errorf("phase %s: %w", p.name, err)
		}
		for _, v := range verdicts {
			s.rows = append(s.rows, v.row(p))
			s.wrong = append(s.wrong, v.wrong()...)
		}
	}
	if len(left) > 0 {
		s.notes = append(s.notes, "nginx is not installed, so these runs were left out: "+strings.Join(left, ", "))
	}
	return []section{s}, nil
}

// playPhase runs all trials of a phase side by side and judges each.
func (r *rig) playPhase(ctx context.Context, p phase) ([]verdict, error) {
	var workers []worker
	for _, t := range p.trials {
		workers = append(workers, worker{queue: t.queue(), concurrency: t.concurrency, limits: t.limit.toml()})
	}
	s, err := r.newScene(ctx, workers)
	if err != nil {
		return nil, err
	}
	due := make([][]time.Time, len(p.trials))
	for i, t := range p.trials {
		if due[i], err = s.enqueueTrial(ctx, t, p.length); err != nil {
			return nil, err
		}
	}
	do := []func(context.Context) error{func(ctx context.Context) error { return s.until(ctx, p.length) }}
	if p.faults != nil {
		for _, f := range p.faults(s, p) {
			do = append(do, f)
		}
	}
	if err := s.play(ctx, do...); err != nil {
		return nil, err
	}
	var verdicts []verdict
	for i, t := range p.trials {
		l, err := s.log(t.queue())
		if err != nil {
			return nil, err
		}
		v := judge(t, l, due[i], s.switched)
		v.faults = s.faults + s.deaths[t.queue()]
		verdicts = append(verdicts, v)
	}
	return verdicts, nil
}

// enqueueTrial returns when each job is due.
func (s *scene) enqueueTrial(ctx context.Context, t trial, length time.Duration) (due []time.Time, err error) {
	url := s.receiver.url(acceptingPath)
	if t.behindNginx {
		url = s.nginx.url(t.limit.perSecond)
	}
	for _, w := range t.waves(length) {
		if err := s.enqueue(ctx, t.queue(), url, "default", w.at, w.jobs); err != nil {
			return nil, err
		}
		for range w.jobs {
			due = append(due, onBoot(s.began+w.at))
		}
	}
	return due, nil
}

var ratesHead = []string{
	"what happens", "limit", "burst", "jobs at a time", "starts", "starts per second", "of the limit", "aim",
	"most in a window", "allowed", "windows over", "at the receiver: most", "windows over", "way, p99",
}

func (v verdict) row(p phase) []string {
	happens, limits, burst := p.happens, v.limit.String(), fmt.Sprint(v.limit.burst)
	switch {
	case v.faults == 1:
		happens += " once"
	case v.faults > 1:
		happens += fmt.Sprintf(" %d times", v.faults)
	}
	if v.behindNginx {
		happens = fmt.Sprintf("behind nginx, which refused %d", v.refused)
	}
	if v.limit.quota > 0 {
		burst = ""
	}
	if v.then != (limit{}) {
		limits += ", then " + v.then.String()
	}
	var means []string
	for _, m := range v.means {
		means = append(means, fmt.Sprintf("%.2f", m))
	}
	aim := ""
	if p.aims {
		aim = fmt.Sprintf("%.1f %%: %s", 100*v.limit.aim(), yes(v.share >= v.limit.aim()))
	}
	return []string{
		happens, limits, burst, fmt.Sprint(v.concurrency), fmt.Sprint(v.starts), strings.Join(means, ", "),
		fmt.Sprintf("%.1f %%", 100*v.share), aim, fmt.Sprint(v.most), fmt.Sprint(v.allowed), fmt.Sprint(v.over),
		fmt.Sprint(v.receiverMost), fmt.Sprint(v.receiverOver), fmt.Sprintf("%.1f ms", v.way.Seconds()*1000),
	}
}
