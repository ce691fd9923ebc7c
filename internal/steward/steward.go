// Package steward is a supervisor's own connection to the database. What it does there may fail or wait without any
// queue noticing: it brings back jobs of queues nobody serves, warns of jobs nobody will do, and stores what the
// children are for whoever looks from outside.
package steward

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	mathrand "math/rand/v2"
	"os"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"queuekeeper/config"
	"queuekeeper/handler"
	"queuekeeper/internal/procs"
	"queuekeeper/internal/wire"
	"queuekeeper/jobs"
)

// patience is how long one operation may take.
const patience = 5 * time.Second

// Steward is the part of a supervisor that may talk to the database. Show, Use and Try are for any goroutine.
type Steward struct {
	log     hclog.Logger  // fixed
	times   wire.Times    // fixed
	here    jobs.Holder   // fixed: who sweeps. A sweep is over before anybody else can see it, so n and c stay 1
	changed chan struct{} // capacity 1: there is something new in given

	farewell time.Duration // fixed: how long the last operation may take, once it is time to go

	mu    sync.Mutex
	given given

	// For Run only.
	failures int              // in a row
	sweepAt  time.Time        // when to look for queues nobody serves
	warned   map[string]int64 // the queues without a worker that were warned of
}

// given is what the supervisor last said.
type given struct {
	file    config.File
	picture jobs.Picture
	shown   time.Time // when it was
	shows   int       // pictures so far
	files   int       // changes of the file so far
	left    string    // the deaths in queues that nobody serves any more: what they were doing may still be running
}

// New returns the steward of a supervisor that runs with file. It does nothing before Run.
func New(file config.File, log hclog.Logger, times wire.Times) *Steward {
	return &Steward{
		log: log, times: times, here: thisProcess(), changed: make(chan struct{}, 1), farewell: time.Second,
		given: given{file: file},
	}
}

// thisProcess is this supervisor as its sweeps know it, so that a holder on the same machine can be told.
func thisProcess() jobs.Holder {
	id := make([]byte, 16)
	_, _ = rand.Read(id)     // never fails
	host, _ := os.Hostname() // "" never matches another's
	started, _ := procs.StartTime(os.Getpid())
	return jobs.Holder{
		Supervisor: hex.EncodeToString(id), N: 1, C: 1, Host: host, BootID: procs.BootID(),
		PIDNamespace: procs.PIDNamespace(), PID: os.Getpid(), ProcessStart: started,
	}
}

// Show hands over what the children are now. It never blocks; of several pictures only the newest is stored.
func (s *Steward) Show(p jobs.Picture) {
	s.give(func(g *given) { g.picture, g.shown, g.shows, g.left = p, time.Now(), g.shows+1, left(p) })
}

// Use hands over the file that holds from now on: other queues, maybe another database. It never blocks.
func (s *Steward) Use(file config.File) {
	s.give(func(g *given) { g.file, g.files = file, g.files+1 })
}

func (s *Steward) give(change func(*given)) {
	s.mu.Lock()
	change(&s.given)
	s.mu.Unlock()
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

func (s *Steward) now() given {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.given
}

// Run works until ctx ends, however often the database is lost. Then it stores the last picture, if it is connected,
// and returns: within a second, and with its connection closed.
func (s *Steward) Run(ctx context.Context) {
	last, cancel := outlast(ctx, s.farewell)
	defer cancel()
	for ctx.Err() == nil {
		if err := s.serve(ctx, last); err != nil && ctx.Err() == nil {
			s.lost(err)
			s.backOff(ctx)
		}
	}
}

// outlast returns a context that ends d after ctx does.
func outlast(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	last, cancel := context.WithCancel(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, func() { time.AfterFunc(d, cancel) })
	return last, cancel
}

// serve does all there is to do on one connection, until something fails, the database is another one or ctx ends.
// After any failure there is a new connection: what is wrong may be wrong with the session only.
func (s *Steward) serve(ctx, last context.Context) error {
	v, err := s.visit(ctx, s.now().file)
	if err != nil {
		return err
	}
	defer v.leave()
	for ctx.Err() == nil {
		if v.moved() {
			return nil
		}
		if err := v.work(ctx, last); err != nil {
			return err
		}
		s.found()
		v.wait(ctx)
	}
	if err := v.show(last); err != nil {
		s.log.Warn("the end of the children is not stored", "error", hclog.Quote(err.Error()))
	}
	return nil
}

// lost tells once that the database is out of reach; every try after that is silent.
func (s *Steward) lost(err error) {
	if s.failures++; s.failures == 1 {
		s.log.Warn("steward waiting for the database", "error", hclog.Quote(err.Error()))
	}
}

func (s *Steward) found() {
	if s.failures > 0 {
		s.log.Info("steward has the database again")
	}
	s.failures = 0
}

// backOff waits before the next try: not at all after the first failure.
func (s *Steward) backOff(ctx context.Context) {
	if s.failures == 1 {
		return
	}
	delay := handler.Backoff(s.failures-2, s.times.ReconnectMin, s.times.ReconnectMax, mathrand.Float64())
	select {
	case <-ctx.Done():
	case <-time.After(delay):
	}
}
