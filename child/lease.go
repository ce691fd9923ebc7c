package child

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/jackc/pgx/v5/pgconn"

	"queuekeeper/config"
	"queuekeeper/internal/procs"
	"queuekeeper/internal/wire"
	"queuekeeper/jobs"
)

// Why a handler's context ends, besides its timeout.
var (
	errStopped = errors.New("the process must leave")
	errNotOurs = errors.New("the lease of the queue is lost")
	errGone    = errors.New("the job was cancelled or deleted")
)

// timedOut is the end of a job's time.
type timedOut time.Duration

func (t timedOut) Error() string { return fmt.Sprintf("timed out after %s", time.Duration(t)) }

// lease is what the loop knows of its right to run the queue. Its end is counted on the boot clock, which runs
// on while the machine is suspended, from before the statement that renewed it was sent.
type lease struct {
	held    bool
	mayHold bool          // an acquire was sent: a lease of ours may be in the database
	epoch   int64         // the last one we know to be ours
	until   time.Duration // boot clock
	renewAt time.Time
	lapsed  bool // contexts were ended because the lease is running out

	bidFor    any            // what the bid said our limits are
	bidAt     time.Time      // when to try to acquire again
	rival     jobs.HeldError // the lease that stood in the way
	rivalFrom time.Duration  // since when it has stood there unchanged, on the boot clock
	glanceAt  time.Time      // when to look whether its process lives; zero: it is not of this machine
}

// acquired is the answer to a bid.
type acquired struct {
	*jobs.Acquired
	sent       time.Duration
	heldBefore bool // a lease of ours may have been there before
	err        error
}

// bid tries to acquire the queue, handing in what this process still has from its last epoch.
func (c *loop) bid(free *jobs.Seen) op {
	c.holder.C++
	c.bidFor = shown(c.set.Worker)
	c.say(wire.Status{Is: wire.Bidding})
	heldBefore := c.mayHold
	c.mayHold = true
	// However long a lease is, the supervisor must hear in time that it is the database that is waited for.
	schema, queue, within := jobs.Schema(c.schema), c.set.Worker.Queue, min(c.opTimeout(), maxConnect)
	bid := jobs.Bid{
		Holder: c.holder, TTL: c.set.Lease, Limits: limits(c.set.Worker), Settings: c.bidFor,
		Epoch: c.epoch, Held: c.holding(), Free: free, Deaths: c.set.Deaths, Backoff: c.backoff,
	}
	return func(l *link) any {
		if l.conn == nil {
			return acquired{heldBefore: heldBefore, err: errOffline}
		}
		ctx, cancel := context.WithTimeout(context.Background(), within)
		defer cancel()
		sent := procs.BootClock()
		a, err := schema.Acquire(ctx, l.conn, queue, bid)
		if err == nil {
			l.queue = a.Queue
		}
		return acquired{a, sent, heldBefore, l.checked(err)}
	}
}

func (c *loop) acquiredNow(a acquired) {
	var rival *jobs.HeldError
	switch {
	case errors.As(a.err, &rival):
		c.standBy(rival)
	case a.err != nil:
		c.mayHold = c.mayHold && !refused(a.err) || a.heldBefore
		c.failed(a.err)
	default:
		c.hold(a)
	}
}

// refused reports whether err is Postgres's word that nothing was committed. An end of the connection is not.
func refused(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.SeverityUnlocalized == "ERROR"
}

func (c *loop) hold(a acquired) {
	c.held, c.glanceAt = true, time.Time{}
	c.killLeftovers(a.Before)
	c.epoch = a.Epoch()
	c.renewed(a.sent)
	c.startRates(a.Acquired)
	c.keepOnly(a.Kept)
	c.pauseNews++                    // who knows what was changed meanwhile
	c.more, c.bare = true, c.recount // what can be read is stored first: a count that fails is not tried for ever
	c.described = reflect.DeepEqual(c.bidFor, shown(c.set.Worker))
	c.sweepAt = c.now.Add(c.set.Times.Sweep)
	c.logRecovered(a.Recovered)
	if a.Before == (jobs.Holder{}) {
		c.log.Info("queue acquired", "epoch", c.epoch)
	} else {
		c.log.Info("queue taken over", "epoch", c.epoch, "from", a.Before.Name())
	}
	c.report(wire.Ready, "")
}

// shown is what the row of the queue says of its worker. Its command may hold secrets.
func shown(w config.Worker) any {
	var quotas []string
	for _, q := range w.Quotas {
		quotas = append(quotas, q.String())
	}
	return struct {
		MaxJobsPerSecond float64  `json:"max_jobs_per_second"`
		Burst            int      `json:"burst"`
		Concurrency      int      `json:"concurrency"`
		Quotas           []string `json:"quotas,omitempty"`
		PerLane          float64  `json:"max_jobs_per_second_per_lane,omitempty"`
		Order            string   `json:"order"`
	}{w.MaxJobsPerSecond, w.Burst, w.Concurrency, quotas, w.PerLane, w.Order}
}

// renewed counts the lease from when the statement that renewed it was sent.
func (c *loop) renewed(sent time.Duration) {
	c.until, c.lapsed = sent+c.set.Lease, false
	c.renewAt = c.now.Add(c.set.Lease / 3)
}

// standBy waits for another holder: for its release, which is told, for its lease to run out, and for proof that
// it is dead.
func (c *loop) standBy(rival *jobs.HeldError) {
	c.held, c.mayHold, c.failures = false, false, 0
	c.keepOnly(nil)
	if c.rival.Seen != rival.Seen {
		c.rivalFrom = procs.BootClock()
	}
	c.rival = *rival
	if c.goneFromHere(rival.Holder) {
		c.log.Warn("the holder's process is gone; taking over", "holder", rival.Holder.Name())
		c.do(c.bid(&rival.Seen))
		return
	}
	// Unchanged for a whole lease by our own clock: the database's clock may have gone back, its holder is dead.
	if procs.BootClock()-c.rivalFrom > rival.TTL {
		c.do(c.bid(&rival.Seen))
		return
	}
	c.bidAt = c.now.Add(min(rival.ExpiresIn, rival.TTL/3) + time.Millisecond)
	c.glanceAt = time.Time{}
	if sameMachine(rival.Holder, c.holder) {
		c.glanceAt = c.now.Add(c.set.Times.Glance)
	}
	if c.report(wire.StandingBy, rival.Holder.Name()) {
		c.log.Info("standing by", "holder", rival.Holder.Name(), "lease_ends_in", rival.ExpiresIn.Round(time.Second))
	} else {
		c.say(c.said) // what came of the bid
	}
}

// glance looks whether the rival's process still lives; the database is asked only if it does not.
func (c *loop) glance() {
	if !c.isDue(c.glanceAt) {
		return
	}
	c.glanceAt = c.now.Add(c.set.Times.Glance)
	if c.goneFromHere(c.rival.Holder) {
		c.bidAt = time.Time{}
	}
	c.due(c.glanceAt)
}

// goneFromHere reports whether a holder was a process of this very machine, and is no more.
func (c *loop) goneFromHere(holder jobs.Holder) bool {
	return sameMachine(holder, c.holder) && procs.Gone(holder.PID, holder.ProcessStart)
}

func sameMachine(a, b jobs.Holder) bool {
	if a.BootID == "" || a.PIDNamespace == "" {
		return false // who knows where it was
	}
	return a.Host == b.Host && a.BootID == b.BootID && a.PIDNamespace == b.PIDNamespace
}

// killLeftovers kills the commands of a child of this machine that died with its supervisor, before their jobs are
// started again. They are known by the mark their own supervisor gave them: a row alone must not get anything killed.
func (c *loop) killLeftovers(before jobs.Holder) {
	if before.Supervisor == c.set.Supervisor || !c.goneFromHere(before) {
		return
	}
	if err := procs.KillMarked(before.PID, wire.Mark(before.Supervisor, before.N)); err != nil {
		c.log.Warn("commands of the earlier holder may still run", "error", hclog.Quote(err.Error()))
	}
}

// guardLease ends what runs before the lease does. A margin is left for handlers to notice.
func (c *loop) guardLease() {
	if len(c.running)+len(c.planned) == 0 || c.epoch == 0 {
		return
	}
	left := c.until - procs.BootClock()
	margin := min(c.set.Worker.KillAfter+time.Second, c.set.Lease/3)
	if !c.lapsed && c.due(c.now.Add(left-margin)) {
		c.lapsed = true
		c.log.Error("the lease runs out and cannot be renewed; ending what runs", "jobs", len(c.running))
		c.unplan(nil)
		c.cancelAll(errNotOurs)
	}
	if len(c.running) > 0 && c.due(c.now.Add(left)) {
		c.killRunning()
	}
}

// killRunning is for the moment another may have the queue: commands are killed. A goroutine cannot be, so with
// one of those the process goes.
func (c *loop) killRunning() {
	if err := procs.KillRest(); err != nil {
		c.log.Error("some processes may still run", "error", hclog.Quote(err.Error()))
	}
	if c.handlers.Go() {
		c.log.Error("handlers outlive the lease; leaving", "jobs", len(c.running))
		c.leave(wire.ExitLater)
		return
	}
	c.due(c.now.Add(10 * time.Millisecond)) // to kill what was forked meanwhile
}

// opTimeout is how long an operation may take: several fit into a lease.
func (c *loop) opTimeout() time.Duration { return c.set.Lease / 6 }
