package jobs_test

// What the database does in the model of model_test.go.

func (w *world) arrive(m *message) {
	if w.failover {
		w.replica = w.db
	}
	switch m.kind {
	case acquire:
		w.acquire(m)
	case step, release:
		w.step(m)
	case ask:
		w.ask(m)
	}
	m.answered = true
}

func (w *world) acquire(m *message) {
	before := w.db
	same := before.holder.supervisor == m.from.supervisor
	yields := before.holder.supervisor == 0 || before.left == 0 ||
		same && before.holder.before(m.from) ||
		w.takesOverFromItself && before.holder == m.from
	if !yields {
		return
	}
	m.held = true
	m.counted = w.charge()
	w.db.epoch++
	w.db.holder, w.db.left = m.from, max(ttl-m.age, 0)
	mine := func(epoch int8) bool {
		return before.holder.process == m.from.process && (epoch == m.epoch || epoch == before.epoch)
	}
	for j := range w.db.rows {
		r, known := &w.db.rows[j], m.work[j]
		if r.state != running || w.oldSnapshot && !m.seen[j] {
			continue
		}
		holds := known.is == claimed || known.is == started || known.is == ended
		if holds && known.attempt == r.attempts && mine(r.epoch) {
			r.epoch, m.kept[j] = w.db.epoch, true
			r.fresh = false // it was charged
			continue
		}
		w.bringBack(j, mine(r.epoch), m.from.process)
	}
	m.epoch = w.db.epoch
}

// sweep acquires the queue and gives it back with the counts as they are then.
func (w *world) sweep() {
	w.acquire(&message{kind: acquire, from: connection{process{int8(len(w.kids) + 1), 1}, 1}})
	w.db.holder, w.db.left = connection{}, 0
}

// bringBack recovers a row.
func (w *world) bringBack(j int, excuse bool, by process) {
	r := &w.db.rows[j]
	for _, k := range w.kids {
		if k.work[j].is == started && k.work[j].attempt == r.attempts && !w.failover {
			w.bad = "a job was brought back while its handler runs"
		}
	}
	if r.by != by {
		r.lost++
	}
	if excuse {
		r.excused++
	}
	r.end(pending)
}

func (r *row) end(s rowState) { r.state, r.epoch, r.fresh, r.by = s, 0, false, process{} }

// step is a Step or a release.
func (w *world) step(m *message) {
	if w.db.epoch != m.epoch || w.db.holder != m.from && !w.fencesByEpochOnly {
		return
	}
	if w.db.holder != m.from {
		w.bad = "one who does not hold the queue was served"
	}
	m.held = true
	w.db.left = max(ttl-m.age, 0)
	w.settle(m)
	for j := range w.db.rows {
		r, known := &w.db.rows[j], m.work[j]
		if known.is == ended && r.state == running && r.attempts == known.attempt && r.epoch == m.epoch {
			w.record(r, known.end, m.from.process)
			m.recorded[j] = true
		}
		if m.claim > 0 && r.state == pending && known.is != givenUp {
			r.state, r.epoch, r.fresh, r.by = running, m.epoch, w.countsStarts, m.from.process
			r.attempts++
			m.claim--
			m.claims[j] = r.attempts
		}
	}
	if m.kind == release {
		w.db.holder, w.db.left = connection{}, 0
	}
}

func (w *world) record(r *row, e end, by process) {
	if r.by != by {
		w.bad = "an outcome was recorded for an attempt of another"
	}
	switch e {
	case endOK:
		r.end(done)
	case endFail:
		r.lost++
		r.end(pending)
	case endExcused:
		r.excused++
		r.end(pending)
	}
}

func (w *world) ask(m *message) {
	if m.held = w.db.epoch == m.epoch && w.db.holder == m.from; !m.held {
		return
	}
	for j, r := range w.db.rows {
		if r.state != running || r.epoch != m.epoch {
			continue
		}
		if m.work[j].is != unknown {
			m.kept[j] = true
		} else {
			m.claims[j] = r.attempts
		}
	}
}
