package main

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// window is how long a round is hurt.
const window = 2500 * time.Millisecond

// queue is a [[worker]] of the file. There is about as much for it to do as it gets done in a window.
type queue struct {
	name        string
	perSecond   float64 // 0: no limit
	quota       int     // in any 2 s; 0: none
	lanes       int     // so many take turns
	perLane     float64 // jobs per second of each; 0: no limit
	strict      bool    // nothing overtakes a job of its lane that has started
	burst       int
	concurrency int
	command     bool // a process for each job, not a Go handler
	jobs        int
}

const quotaWindow = 2 * time.Second

// queues are those a round chooses from. Those with a limit come first: each round has one of them at least. They
// have Go handlers: of a command one sees when it got going, not when it was started.
var queues = []queue{
	{name: "limited", perSecond: 20, burst: 1, concurrency: 4, jobs: 60},
	{name: "bursts", perSecond: 10, burst: 5, concurrency: 10, jobs: 35},
	{name: "slow", perSecond: 4, burst: 1, concurrency: 2, jobs: 12},
	{name: "quota", quota: 20, burst: 1, concurrency: 4, jobs: 40},
	{name: "lanes", lanes: 5, perLane: 5, burst: 1, concurrency: 4, jobs: 60},
	{name: "strict", lanes: 4, strict: true, burst: 1, concurrency: 6, jobs: 60},
	{name: "plain", burst: 1, concurrency: 1, jobs: 40},
	{name: "wide", burst: 1, concurrency: 10, jobs: 200},
	{name: "command", burst: 1, concurrency: 1, command: true, jobs: 10},
	{name: "commands", burst: 1, concurrency: 10, command: true, jobs: 50},
}

const withLimit = 5 // of them

// plan is all that chance decides about a round.
type plan struct {
	seed   uint64
	number int
	queues []queue
	jobs   [][]job // in the order they are enqueued; the first while nothing runs yet
	events []*event
	hang   bool // at last a child is stopped for good
	way    wayOut
}

// job is one to be enqueued.
type job struct {
	queue queue
	name  string
	ms    int // how long it takes
}

// event is something that happens to what runs. What it happens to is only known then: pick chooses.
type event struct {
	at, lasts time.Duration
	kind      kind
	pick      int
	happened  string // when, and to whom; "": it did not come to that
}

func newPlan(seed uint64, number int) plan {
	r := rand.New(rand.NewPCG(seed, uint64(number)))
	p := plan{seed: seed, number: number, hang: hangs(number)}
	p.queues = chooseQueues(r)
	p.jobs = chooseJobs(r, p.queues)
	for range 6 + r.IntN(9) {
		p.events = append(p.events, &event{
			at:    time.Duration(r.Int64N(int64(window))),
			lasts: 50*time.Millisecond + time.Duration(r.Int64N(int64(longestStop))),
			kind:  chooseKind(r),
			pick:  r.IntN(1 << 20),
		})
	}
	slices.SortFunc(p.events, func(a, b *event) int { return cmp.Compare(a.at, b.at) })
	p.way = waysOut[r.IntN(len(waysOut))]
	return p
}

func chooseQueues(r *rand.Rand) []queue {
	chosen := []queue{queues[r.IntN(withLimit)]}
	for _, i := range r.Perm(len(queues))[:2+r.IntN(4)] {
		if !slices.ContainsFunc(chosen, func(q queue) bool { return q.name == queues[i].name }) {
			chosen = append(chosen, queues[i])
		}
	}
	return chosen
}

// batches is in how many parts the jobs come: the first is half of them.
const batches = 6

func chooseJobs(r *rand.Rand, queues []queue) [][]job {
	all := make([][]job, batches)
	for _, q := range queues {
		for n := range q.jobs {
			batch := 0
			if n >= q.jobs/2 {
				batch = 1 + r.IntN(batches-1)
			}
			all[batch] = append(all[batch], chooseJob(r, q, batch))
		}
	}
	for _, jobs := range all {
		r.Shuffle(len(jobs), func(i, j int) { jobs[i], jobs[j] = jobs[j], jobs[i] })
	}
	return all
}

// chooseJob makes most jobs short, but commands long enough for one that outlives its child to meet the next. Jobs
// that fail once come early, so that their back-off is over in time.
func chooseJob(r *rand.Rand, q queue, batch int) job {
	long := r.Float64()
	j := job{queue: q, name: workName, ms: int(300 * long * long * long)}
	if q.command {
		j.ms = int(600 * long)
	}
	switch chance := r.IntN(24); {
	case chance == 0:
		j.name = refuseName
	case chance <= 2 && batch == 0:
		j.name = failName
	}
	return j
}

// chooseKind takes a kind as often as its weight says.
func chooseKind(r *rand.Rand) kind {
	total := 0
	for _, k := range kinds {
		total += k.weight
	}
	n := r.IntN(total)
	for _, k := range kinds {
		if n -= k.weight; n < 0 {
			return k
		}
	}
	panic("the weights do not add up")
}

func (p plan) count() (n int) {
	for _, batch := range p.jobs {
		n += len(batch)
	}
	return n
}

func (p plan) names() string {
	var names []string
	for _, q := range p.queues {
		names = append(names, q.name)
	}
	return strings.Join(names, ", ")
}

// queue is the one an event is about.
func (p plan) queue(e *event) queue { return p.queues[e.pick%len(p.queues)] }

// story is the plan, with what came of it.
func (p plan) story() string {
	var text strings.Builder
	fmt.Fprintf(&text, "queues %s; %d jobs; the way out is %s\n", p.names(), p.count(), p.way.name)
	for _, e := range p.events {
		happened := e.happened
		if happened == "" {
			happened = "did not happen"
		}
		fmt.Fprintf(&text, "%6.3f s  %-28s %s\n", e.at.Seconds(), e.kind.name, happened)
	}
	return text.String()
}
