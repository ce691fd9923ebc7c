package jobs_test

// forget makes states the same that differ only in what nothing will ever look at, and renumbers what only grows
// and is only compared, so that histories which differ in nothing else meet.
func (w *world) forget() {
	for i := range w.kids {
		k, late := &w.kids[i], &w.late[i]
		k.said.forget()
		late.forget()
		if k.work == [maxJobs]work{} {
			k.left = 0 // a claim will set it
		}
		if late.kind != acquire && late.epoch < w.db.epoch && !w.failover {
			*late = message{} // fenced, whenever it comes
		}
		if w.refused(&k.said) {
			k.said.work, k.said.age = [maxJobs]work{}, ttl
		}
	}
	for j := range w.db.rows {
		if w.db.rows[j].state == done {
			w.db.rows[j] = row{state: done}
		}
	}
	w.renumber()
	w.forgetStarts()
}

// refused reports whether the answer to a statement is no, or will be.
func (w *world) refused(m *message) bool {
	if m.answered {
		return !m.held
	}
	return m.kind != silence && m.kind != acquire && m.epoch < w.db.epoch && !w.failover
}

// forget drops what neither the database nor the child will read.
func (m *message) forget() {
	for j := range m.work {
		switch is := m.work[j].is; {
		case m.answered, m.kind == step && is != ended && is != givenUp, m.kind != step && is == givenUp:
			m.work[j] = work{}
		case m.kind == acquire:
			m.work[j].is, m.work[j].end = claimed, endOK // held, whatever it does
			if is == unknown {
				m.work[j] = work{}
			}
		}
	}
	if m.answered {
		m.from, m.seen = connection{}, [maxJobs]bool{}
		if m.kind != acquire {
			m.epoch = 0
		}
	}
}

// numbers are some that are only compared with each other.
type numbers struct {
	all  [24]*int8
	used int
}

func (s *numbers) add(n *int8) {
	s.all[s.used] = n
	s.used++
}

// renumber makes them as small as their order allows. 0 stays.
func (s *numbers) renumber() {
	var used, rank [32]int8
	for _, n := range s.all[:s.used] {
		used[*n] = 1
	}
	next := int8(1)
	for n := 1; n < len(used); n++ {
		rank[n] = next
		next += used[n]
	}
	for _, n := range s.all[:s.used] {
		if *n > 0 {
			*n = rank[*n]
		}
	}
}

func (s *state) renumber() {
	var epochs numbers
	var ns, cs [2]numbers // of each supervisor
	for _, db := range [...]*database{&s.db, &s.replica} {
		epochs.add(&db.epoch)
		if i := db.holder.supervisor - 1; i >= 0 {
			ns[i].add(&db.holder.n)
			cs[i].add(&db.holder.c)
		}
		for j := range db.rows {
			epochs.add(&db.rows[j].epoch)
			if i := db.rows[j].by.supervisor - 1; i >= 0 {
				ns[i].add(&db.rows[j].by.n)
			}
		}
	}
	for i := range s.kids {
		k := &s.kids[i]
		epochs.add(&k.epoch)
		ns[i].add(&k.n)
		cs[i].add(&k.c)
		for _, m := range [...]*message{&k.said, &s.late[i]} {
			epochs.add(&m.epoch)
			ns[i].add(&m.from.n)
			cs[i].add(&m.from.c)
		}
	}
	epochs.renumber()
	for i := range s.kids {
		ns[i].renumber()
		cs[i].renumber()
	}
}
