package child

import (
	"os"
	"time"

	"github.com/hashicorp/go-hclog"

	"queuekeeper/handler"
	"queuekeeper/internal/procs"
	"queuekeeper/internal/wire"
	"queuekeeper/jobs"
	"queuekeeper/ratelimit"
)

// loop is the work of one child: one goroutine owns all of it, in one select.
type loop struct {
	set      wire.Settings
	handlers *handler.Set
	log      hclog.Logger
	say      func(wire.Status)
	signals  <-chan os.Signal
	control  <-chan wire.Control // closed: the supervisor is gone
	link     *link
	results  chan result // capacity: concurrency, so no handler that ends ever waits for us
	life     *life
	quiet    bool // nothing is claimed

	now  time.Time // of this turn of the loop
	wake time.Time // the earliest moment something becomes due that is not yet
	busy bool      // an operation is under way
	said wire.Status

	connection
	lease
	rates
	turning
	pausing
	work
	claiming
	speaking
	leaving
}

// newLoop returns the loop of a child that has read its settings.
func newLoop(set wire.Settings, handlers *handler.Set, log hclog.Logger) *loop {
	w := set.Worker
	c := &loop{
		set:      set,
		handlers: handlers,
		log:      log,
		link:     newLink(),
		results:  make(chan result, w.Concurrency),
		life:     new(life),
		quiet:    set.Quiet,
	}
	c.connection.holder = thisProcess(set)
	c.work.running = map[int64]*run{}
	c.speaking.skip = map[int64]refusal{}
	c.refusedAt, c.refusals = map[int64]time.Time{}, map[string]refusals{}
	c.disputed = map[string]bool{}
	c.lanesToPause, c.lanesPausedUntil = map[string]jobs.LanePause{}, map[string]time.Time{}
	c.limiter, _ = ratelimit.New(limitsOf(w), time.Now(), ratelimit.Saved{}) // until there is a lease
	c.lanes = ratelimit.NewLanes(laneLimit(w), time.Now(), 0, nil)
	return c
}

// run works until the child must leave, and returns its exit status.
func (c *loop) run() int {
	go c.link.run()
	defer c.link.do(nil)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		c.advance()
		c.logEnded()
		if c.left {
			return c.code
		}
		timer.Reset(time.Until(c.wake))
		select {
		case s := <-c.signals:
			c.signalled(s)
		case order, ok := <-c.control:
			c.now = time.Now() // it has slept
			c.ordered(order, ok)
		case <-c.link.told:
			c.listened(c.link.take())
		case <-timer.C:
		case r := <-c.results:
			c.now = time.Now()
			c.ended(r)
			c.collect() // all that ended goes with the next Step
		case answer := <-c.link.results:
			c.busy = false
			c.answered(answer)
		}
	}
}

// advance does whatever can be done now and finds out when there is more to do.
func (c *loop) advance() {
	c.now = time.Now()
	c.life.turns.Add(1)
	c.life.running.Store(int64(len(c.running)))
	c.wake = c.now.Add(c.set.Times.Beat) // to show that it turns
	if len(c.running) > 0 {
		// A timer stands still while the machine is suspended, the lease does not: look soon after.
		c.wake = c.now.Add(min(time.Second, c.set.Times.Beat))
	}
	c.guardLease()
	c.startPlanned()
	c.guardJobs() // those just started too
	c.guardExit()
	c.glance()
	if !c.busy && !c.left {
		c.speak()
	}
}

// due reports whether t has come; if not, the loop will look again then. Every condition on time asks here, so
// that no timer can be forgotten.
func (c *loop) due(t time.Time) bool {
	if !t.After(c.now) {
		return true
	}
	if t.Before(c.wake) {
		c.wake = t
	}
	return false
}

// do sends an operation to the connection.
func (c *loop) do(o op) {
	c.busy = true
	c.link.do(o)
}

// listened takes what notifications said. What cannot be acted on now is remembered.
func (c *loop) listened(h hearing) {
	if h&heardJobs != 0 {
		c.more = true
	}
	if h&heardCancel != 0 {
		c.askGone = true
		c.more = c.more || c.strict() // others may have waited for that job
	}
	if h&heardPauses != 0 {
		c.pauseNews++
		c.more = true
	}
	if h&heardLease != 0 {
		c.bidAt = time.Time{}
	}
	if h&heardBroken != 0 && c.online && !c.busy { // an operation under way says so itself
		c.now = time.Now()
		c.failed(errOffline)
	}
}

// report tells the supervisor what this child is, if that is news, and reports whether it was.
func (c *loop) report(is, detail string) bool {
	s := wire.Status{Is: is, Detail: detail}
	if s == c.said {
		return false
	}
	c.said = s
	c.say(s)
	return true
}

// thisProcess is this child as the database will know it. Its connections count from 1.
func thisProcess(set wire.Settings) jobs.Holder {
	host, _ := os.Hostname() // "" is harmless: it only shows in messages and never matches another's
	started, _ := procs.StartTime(os.Getpid())
	return jobs.Holder{
		Supervisor: set.Supervisor, N: set.N, Host: host, BootID: procs.BootID(), PIDNamespace: procs.PIDNamespace(),
		PID: os.Getpid(), ProcessStart: started,
	}
}
