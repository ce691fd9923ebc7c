package jobs_test

// What a child does in the model of model_test.go.

// say sends a statement. A child has one under way at a time.
func (w *world) say(i int, what kind) {
	k := &w.kids[i]
	if what == acquire && !w.takesOverFromItself {
		k.c++
	}
	if what == acquire && w.takesOverFromItself {
		k.c = 1
	}
	k.said = message{kind: what, from: w.conn(i), epoch: k.epoch, work: k.work}
	if what == step {
		k.said.claim = maxJobs
	}
	w.store(k)
}

func (w *world) conn(i int) connection {
	return connection{process{int8(i + 1), w.kids[i].n}, w.kids[i].c}
}

// hear takes the answer.
func (w *world) hear(i int) {
	k := &w.kids[i]
	m := k.said
	k.said = message{}
	switch {
	case m.kind == release:
		*k = kid{n: k.n + 1} // it leaves; another will be started
		return
	case !m.held:
		k.held = false
		k.keepOnly([maxJobs]bool{})
		if m.kind == ask {
			k.epoch = 0
		}
		return
	case m.kind == acquire:
		k.held, k.epoch = true, m.epoch
		k.keepOnly(m.kept)
		k.counted = m.counted
	case m.kind == ask:
		k.held = true
		k.keepOnly(m.kept)
		for j, attempt := range m.claims {
			if attempt > 0 {
				k.work[j] = work{ended, attempt, endExcused} // nobody started it
			}
		}
	case m.kind == step:
		for j := range k.work {
			if m.recorded[j] && k.work[j].is == ended {
				k.work[j] = work{}
			}
			if m.claims[j] > 0 {
				k.work[j] = work{is: claimed, attempt: m.claims[j]}
			}
		}
	}
	if m.kind != ask {
		k.left = max(ttl-m.age, 0) // from when it was sent
	}
	k.answered = k.counted
	w.guard(k)
}

func (k *kid) keepOnly(kept [maxJobs]bool) {
	for j := range k.work {
		switch is := k.work[j].is; {
		case kept[j]:
		case is == started || is == givenUp:
			k.work[j].is = givenUp
		default:
			k.work[j] = work{}
		}
	}
}

// guard ends what a child has when its lease runs out.
func (w *world) guard(k *kid) {
	if k.left > 0 || w.ignoresItsEnd {
		return
	}
	for j := range k.work {
		switch k.work[j].is {
		case claimed, started:
			k.work[j].is, k.work[j].end = ended, endExcused
		case givenUp:
			k.work[j] = work{}
		}
	}
}

// disconnect breaks a child's connection. What was said may still arrive, its answer cannot.
func (w *world) disconnect(i int) {
	k := &w.kids[i]
	if k.said.kind != silence && !k.said.answered {
		w.late[i] = k.said
	}
	k.said, k.held = message{}, false
}

// tick lets time pass, for all clocks alike. It returns whether that is a fault.
func (w *world) tick() (fault bool) {
	down := func(left *int8) bool {
		*left = max(*left-1, 0)
		return *left == 0
	}
	up := func(m *message) bool {
		if m.kind != silence {
			m.age = min(m.age+1, ttl)
		}
		return m.age == ttl
	}
	fault = w.db.left == 1 && w.db.holder.supervisor != 0
	down(&w.db.left)
	down(&w.replica.left)
	for i := range w.kids {
		k := &w.kids[i]
		old := k.said.age
		fault = up(&k.said) && old < ttl || fault
		up(&w.late[i])
		before := k.work
		if down(&k.left) {
			w.guard(k)
		}
		fault = fault || k.work != before
	}
	return fault
}
