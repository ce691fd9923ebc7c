package main

import (
	"fmt"
	"strings"
	"time"
)

// trial is one queue with a limit in one phase.
type trial struct {
	phase       string
	limit       limit
	then        limit // what a reload in the middle makes of it; zero: it stays
	concurrency int
	gaps        bool    // its jobs come in waves, and in between the bucket fills
	from, to    float64 // when its jobs are due, as fractions of the phase
	behindNginx bool
	short       bool // it is also there when all is to be short
}

func (t trial) queue() string {
	name := fmt.Sprintf("%s-%g-b%d-c%d", t.phase, t.limit.perSecond, t.limit.burst, t.concurrency)
	if t.limit.quota > 0 {
		name = fmt.Sprintf("%s-quota-%d-c%d", t.phase, t.limit.quota, t.concurrency)
	}
	if t.behindNginx {
		name += "-nginx"
	}
	return name
}

// phase is a number of trials side by side, and what happens to them.
type phase struct {
	name, happens string
	length, brief time.Duration // brief: when all is to be short
	kills         int           // of the child of each
	faults        func(*scene, phase) []fault
	aims          bool // nothing keeps it from its mean
	trials        []trial
}

// chosen are the phases to play: what cannot be done here, or takes too long, is left out and named.
func chosen(short, behindNginx bool) (all []phase, left []string) {
	for _, p := range phases {
		trials := p.trials
		p.trials = nil
		for _, t := range trials {
			t.phase = p.name
			switch {
			case short && !t.short:
			case t.behindNginx && !behindNginx:
				left = append(left, t.queue())
			default:
				p.trials = append(p.trials, t)
			}
		}
		if short {
			p.length, p.kills = p.brief, p.kills/5
		}
		all = append(all, p)
	}
	return all, left
}

func allQueues() []string {
	queues := append([]string{"flood", "weights", "lanes"}, refusalQueues()...)
	all, _ := chosen(false, true)
	for _, p := range all {
		for _, t := range p.trials {
			queues = append(queues, t.queue())
		}
	}
	return queues
}

// wave is a number of jobs that are due at the same time, which counts from the beginning of the phase.
type wave struct {
	at   time.Duration
	jobs int
}

// waves are the jobs of a trial in a phase of that length: without gaps one, a little more than it can do.
func (t trial) waves(length time.Duration) (all []wave) {
	at := func(fraction float64) time.Duration { return time.Duration(fraction * float64(length)) }
	from, to := at(t.from), at(t.to)
	if !t.gaps {
		most := max(t.limit.perSecond, t.then.perSecond) * (to - from).Seconds()
		return []wave{{from, int(most) + 2*max(t.limit.burst, t.then.burst)}}
	}
	period, jobs := t.limit.waves()
	if t.then != (limit{}) { // one of the waves comes at the reload
		period = (to - from) / time.Duration(2*max(1, int((to-from)/(2*period))))
	}
	for ; from < to; from += period {
		all = append(all, wave{from, jobs})
	}
	return all
}

// waves says how often a wave may come and of how many jobs, so that it is done in time for the bucket to fill.
func (l limit) waves() (period time.Duration, jobs int) {
	const busy, spare = 3.5, 0.5 // seconds
	fill := float64(l.burst) / l.perSecond * 1.05
	turns := max(2, int(busy*l.perSecond))
	seconds := fill + float64(turns)/l.perSecond*1.03 + spare
	return time.Duration(seconds * float64(time.Second)), l.burst + turns
}

// String is a line of progress.
func (p phase) String() string {
	var all []string
	for _, t := range p.trials {
		all = append(all, t.limit.String())
	}
	return fmt.Sprintf("%s, %s: %s", p.name, p.length, strings.Join(all, ", "))
}
