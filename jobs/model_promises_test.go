package jobs_test

import "fmt"

// broken says which invariant a state breaks; "": none.
func (s *state) broken() string {
	if s.loses() {
		return tooFew
	}
	for j := range s.db.rows {
		switch row := &s.db.rows[j]; {
		case row.state == running && row.epoch != s.db.epoch:
			return "a running job is under an epoch that is over: it is stuck"
		case row.state == running && s.forgotten(j):
			return "a job runs that its holder does not know of: it is stuck"
		case s.live(j) > 1:
			return "two handlers of one job run at once"
		case row.state != done && row.attempts-row.excused != row.counted():
			return fmt.Sprintf("%d attempts count, want %d", row.attempts-row.excused, row.counted())
		}
	}
	return ""
}

func (s *state) goesBack(to *state) string {
	for j := range s.db.rows {
		if s.db.rows[j].state == done && to.db.rows[j].state != done {
			return "a done job went back"
		}
	}
	return ""
}

// forgotten reports whether the holder of the queue has nothing under way and does not know of a running job.
func (s *state) forgotten(j int) bool {
	i := s.db.holder.supervisor - 1
	if i < 0 {
		return false
	}
	k := &s.kids[i]
	known := k.work[j]
	return s.holds(int(i)) && k.said.kind == silence &&
		(known.is == unknown || known.is == givenUp || known.attempt != s.db.rows[j].attempts)
}

func (s *state) live(j int) (handlers int) {
	for i := range s.kids {
		if is := s.kids[i].work[j].is; is == started || is == givenUp {
			handlers++
		}
	}
	return handlers
}

// counted is how many attempts must count: those that failed or died, and the one that runs.
func (r *row) counted() int8 {
	if r.state == running {
		return r.lost + 1
	}
	return r.lost
}

// holds reports whether a child holds the queue and knows it.
func (s *state) holds(i int) bool {
	k := &s.kids[i]
	return k.held && k.epoch == s.db.epoch && s.db.holder == connection{process{int8(i + 1), k.n}, k.c}
}
