package jobs_test

import (
	"fmt"
	"slices"
	"strings"
)

// event is something that may happen, to a child and a job.
type event struct {
	what       string
	child, job int
}

func (e event) String() string {
	return strings.NewReplacer("CHILD", "child "+string(rune('a'+e.child)), "JOB", fmt.Sprint("job ", e.job)).Replace(e.what)
}

// move is an event and what comes of it.
type move struct {
	event
	to    state
	bad   string
	extra int8
}

// moves are all that may happen next.
type moves struct {
	rules
	from state
	all  []move
}

// add adds a move, if there may be so many more faults.
func (m *moves) add(what string, child, job int, faults int8, do func(w *world)) {
	if m.from.faults < faults {
		return
	}
	w := world{rules: m.rules, state: m.from}
	w.state.faults -= faults
	do(&w)
	w.forget()
	m.all = append(m.all, move{event{what, child, job}, w.state, w.bad, w.extra})
}

func (m *moves) find() {
	for i := range m.from.kids {
		if m.alone && i > 0 {
			break
		}
		m.talk(i)
		for j := range m.from.db.rows {
			m.handle(i, j)
		}
		m.add("CHILD is killed and replaced", i, 0, 1, func(w *world) {
			w.disconnect(i)
			w.kids[i] = kid{n: w.kids[i].n + 1}
		})
	}
	trial := world{rules: m.rules, state: m.from}
	if trial.tick() {
		m.add("time passes, a lease runs out", 0, 0, 1, func(w *world) { w.tick() })
	} else {
		m.add("time passes", 0, 0, 0, func(w *world) { w.tick() })
	}
	m.others()
	if m.failover {
		m.add("failover", 0, 0, 1, func(w *world) { w.db = w.replica })
	}
}

// others is what may be done by others than children.
func (m *moves) others() {
	db := &m.from.db
	runs := func(r row) bool { return r.state == running }
	if m.countsStarts && slices.ContainsFunc(db.rows[:], runs) && (db.holder.supervisor == 0 || db.left == 0) {
		m.add("a steward sweeps the queue", 0, 0, 0, func(w *world) { w.sweep() })
	}
	for j, r := range db.rows {
		if m.cancels && runs(r) {
			m.add("an operator cancels JOB", 0, j, 1, func(w *world) { w.cancel(j) })
		}
	}
}

// talk is what may happen between a child and the database.
func (m *moves) talk(i int) {
	k, late := &m.from.kids[i], &m.from.late[i]
	if k.held || k.said.kind != silence {
		m.add("CHILD loses its connection", i, 0, 1, func(w *world) { w.disconnect(i) })
	}
	switch {
	case k.said.kind == silence && !k.held && m.asksWhatIsMine && k.epoch > 0:
		m.add("CHILD asks what is its own", i, 0, 0, func(w *world) { w.say(i, ask) })
	case k.said.kind == silence && !k.held:
		m.add("CHILD bids", i, 0, 0, func(w *world) { w.say(i, acquire) })
	case k.said.kind == silence:
		m.steps(i)
		if !slices.ContainsFunc(k.work[:], func(j work) bool { return j.is == started || j.is == givenUp }) {
			m.add("CHILD releases", i, 0, 1, func(w *world) { w.leave(i) })
		}
	case k.said.answered:
		m.add("CHILD hears the answer", i, 0, 0, func(w *world) { w.hear(i) })
	case m.oldSnapshot && k.said.kind == acquire && !k.said.begun:
		m.add("the bid of CHILD looks at the jobs", i, 0, 0, func(w *world) { w.look(&w.kids[i].said) })
	default:
		m.add("the statement of CHILD is carried out", i, 0, 0, func(w *world) { w.arrive(&w.kids[i].said) })
	}
	if late.kind != silence && (!m.oldSnapshot || late.kind != acquire || late.begun) {
		m.add("the late statement of CHILD is carried out", i, 0, 0, func(w *world) {
			w.arrive(&w.late[i])
			w.late[i] = message{}
		})
	}
}

// steps are the Steps a child may send.
func (m *moves) steps(i int) {
	m.add("CHILD sends a Step", i, 0, 0, func(w *world) { w.say(i, step) })
	if m.countsStarts {
		m.add("CHILD renews its lease", i, 0, 0, func(w *world) { w.claimUpTo(i, 0) })
	}
	if m.countsStarts && m.jobs > 1 {
		m.add("CHILD sends a Step for one job", i, 0, 0, func(w *world) { w.claimUpTo(i, 1) })
	}
}

func (w *world) claimUpTo(i int, n int8) {
	w.say(i, step)
	w.kids[i].said.claim = n
}

// handle is what may happen to a job in a child.
func (m *moves) handle(i, j int) {
	k := &m.from.kids[i]
	switch k.work[j].is {
	case claimed:
		if k.left > 0 || m.ignoresItsEnd {
			m.add("CHILD starts JOB", i, j, 0, func(w *world) { w.begin(i, j) })
		}
	case started:
		m.add("CHILD ends JOB", i, j, 0, func(w *world) { w.kids[i].work[j].is = ended })
		m.add("CHILD fails JOB", i, j, 1, func(w *world) { w.kids[i].work[j].is, w.kids[i].work[j].end = ended, endFail })
	case givenUp:
		m.add("CHILD has stopped JOB", i, j, 0, func(w *world) { w.kids[i].work[j] = work{} })
	}
}

// leave gives back what was claimed, and the queue.
func (w *world) leave(i int) {
	k := &w.kids[i]
	back := k.waiting()
	for j := range k.work {
		if k.work[j].is == claimed {
			k.work[j].is, k.work[j].end = ended, endExcused
		}
	}
	w.say(i, release)
	if w.breaks == asIfAllHadStarted {
		k.said.counted += back
	}
}

func (w *world) look(m *message) {
	m.begun = true
	for j, r := range w.db.rows {
		m.seen[j] = r.state == running
	}
}
