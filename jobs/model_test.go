package jobs_test

// A small model of the protocol between children and the database, for model_search_test.go to go through in every
// order. It mirrors lease.go (yieldsTo, epochsOf), recover.go (move, recover, judge), step.go and release.go, and
// what package child does with their answers.
//
// Modelled: one queue with one or two jobs; two supervisors, each with one child at a time; statements on their way
// that are answered, whose answer is lost, and that arrive long after their connection broke; children that are
// killed and replaced; a lease that runs out, with the child counting its time from before it sent the renewal, and
// ending what runs by then; handlers that fail; release and the next child. A statement is atomic and comes last in
// the order of the queue's row, as the lock of that row makes it. Only where starts are counted, see
// model_rates_test.go: what is stored of them, Steps that claim nothing or not all, and sweeps of a queue nobody
// serves.
//
// Not modelled: rows that operators lock, cancels (but for the one that is known to hurt), lanes, when turns are,
// back-off, max_attempts; the two cases in which a lease is known to be dead before it has run out; a database
// clock that jumps; a process that stops between the check of its lease and the start of a job. Those last two no
// lease can stand, nor a failover that loses commits: of that one only the fence is looked at.

// ttl is how many ticks a lease lasts.
const ttl = 2

// maxJobs is how many rows the table has.
const maxJobs = 2

// rules are the protocol; each of the first five, and breaks, breaks one rule of it.
type rules struct {
	takesOverFromItself bool // a child's connections are not told apart
	fencesByEpochOnly   bool
	asksWhatIsMine      bool // after a lost connection, in place of acquiring
	oldSnapshot         bool // an acquire sees the jobs as they were before it waited
	ignoresItsEnd       bool // a child whose lease has run out goes on

	countsStarts bool
	breaks       startRule // of counting them
	cancels      bool      // an operator may cancel a running job
	alone        bool      // there is one supervisor

	failover bool // a replica that lost the last commit may take over
	jobs     int
	faults   int8 // so many things go wrong in one history
}

type process struct{ supervisor, n int8 } // supervisor 0: none

type connection struct {
	process
	c int8
}

// before is Holder.before.
func (a connection) before(b connection) bool { return a.n < b.n || a.n == b.n && a.c < b.c }

type rowState int8

const (
	pending rowState = iota
	running
	done
)

// row is a job in the database.
type row struct {
	state             rowState
	attempts, excused int8
	epoch             int8
	fresh             bool // claimed by the Step that stored what is known of the starts: locked_at = settled_at

	// For checks, not for the protocol.
	by   process // who claimed it
	lost int8    // attempts that failed or died, as they really did
}

type database struct {
	epoch  int8
	holder connection
	left   int8 // until the lease runs out
	rows   [maxJobs]row

	counted, waiting int8 // starts, as the last Step stored them
	over             int8 // for checks: by how much too many were counted at the last acquire
}

type workState int8

const (
	unknown workState = iota
	claimed
	started
	ended
	givenUp // its handler has been told to end
)

// work is what a child knows of a job.
type work struct {
	is      workState
	attempt int8
	end     end
}

type end int8

const (
	endOK end = iota
	endFail
	endExcused
)

type kind int8

const (
	silence kind = iota
	acquire
	step
	release
	ask // only asksWhatIsMine
)

// message is a statement on its way, and then its answer.
type message struct {
	kind  kind
	from  connection
	epoch int8
	work  [maxJobs]work
	claim int8          // at most so many
	age   int8          // since it was sent
	begun bool          // only oldSnapshot: it waits for the row of the queue
	seen  [maxJobs]bool // and saw these running

	answered bool
	held     bool // the queue is ours
	kept     [maxJobs]bool
	recorded [maxJobs]bool
	claims   [maxJobs]int8 // attempts

	counted, waiting int8 // starts: to be stored, and in the answer to a bid what was
}

// kid is a child.
type kid struct {
	n, c  int8
	held  bool
	epoch int8
	left  int8 // of its lease, as it counts
	work  [maxJobs]work
	said  message // under way on its connection

	counted  int8 // starts, as long as it holds the queue
	answered int8 // the same when the last answer came; only countsAtTheReply
}

type state struct {
	db      database
	replica database // one commit behind; only with failover
	kids    [2]kid
	late    [2]message // of each supervisor: a statement whose connection is gone
	faults  int8       // still to come
	starts  int8       // that there really were
}

// world is a state in which something happens.
type world struct {
	rules
	state
	bad   string // what must not have happened
	extra int8   // starts that an acquire charged though they never were
}

func (r rules) start() state {
	s := state{faults: r.faults}
	for j := r.jobs; j < maxJobs; j++ {
		s.db.rows[j].state = done
	}
	s.replica = s.db
	s.kids[0].n, s.kids[1].n = 1, 1
	return s
}
