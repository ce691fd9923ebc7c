package child

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"

	"queuekeeper/config"
	"queuekeeper/handler"
	"queuekeeper/internal/wire"
	"queuekeeper/jobs"
)

// work is what the loop knows of its jobs.
type work struct {
	planned  []jobs.Claimed // claimed, waiting for their turn
	running  map[int64]*run
	finished []jobs.Ended // not acknowledged yet
	fresh    bool         // one of finished was never sent
	resendAt time.Time    // when to send again what was not recorded
	starts   int          // since the last Step that went through
	lines    [][]any      // to be logged
}

// run is a job whose handler runs.
type run struct {
	jobs.Claimed
	ctx     context.Context
	cancel  context.CancelCauseFunc
	started time.Time
	timeout time.Duration
	giveUp  time.Time // when it counts as stuck
	lost    bool      // no longer ours: what becomes of it is not recorded
}

// result is what a handler returned.
type result struct {
	run *run
	err error
}

// startPlanned starts each claimed job at its turn. Those that end at once then go with the next Step: without a
// moment for them it would be on its way already.
func (c *loop) startPlanned() {
	if len(c.planned) > 0 && (c.draining || c.quiet || !c.due(c.pausedUntil)) {
		c.unplan(nil) // they came with a Step that the order or the pause had not reached
	}
	if len(c.lanesPausedUntil) > 0 {
		c.unplan(func(j jobs.Claimed) bool {
			if !c.lanePaused(j.Lane) {
				return false
			}
			c.disputed[j.Lane] = true
			return true
		})
	}
	if c.pauseNews > c.pauseKnown {
		return // not before we know of what
	}
	started := false
	for i := 0; i < len(c.planned) && c.due(c.limiter.Next(c.now, 1)); {
		next := c.planned[i]
		if !c.due(c.lanes.Next(c.now, next.Lane)) {
			i++
			continue
		}
		c.planned = slices.Delete(c.planned, i, i+1)
		c.start(next)
		started = true
	}
	if started {
		runtime.Gosched()
		c.collect()
	}
}

// collect takes all results there are.
func (c *loop) collect() {
	for len(c.results) > 0 {
		c.ended(<-c.results)
	}
}

func (c *loop) start(j jobs.Claimed) {
	do, err := c.find(j)
	r := &run{Claimed: j, timeout: timeout(c.set.Worker, j.Name), started: time.Now()}
	r.giveUp = r.started.Add(r.timeout + c.grace())
	ctx, cancel := context.WithCancelCause(context.Background())
	r.cancel = cancel
	c.running[j.ID] = r
	if err != nil { // spends no turn
		c.more = c.more || !c.lanes.None() // so its lane has it still
		r.ctx = ctx
		c.results <- result{r, err}
		return
	}
	ctx, done := context.WithTimeoutCause(ctx, r.timeout, timedOut(r.timeout))
	r.ctx = ctx
	c.limiter.Start(r.started)
	c.starts++
	if !c.lanes.None() {
		c.lanes.Start(j.Lane, r.started)
		c.lookAt(c.lanes.Next(c.now, j.Lane).Add(-c.lead()))
	}
	go handler.Run(ctx, do, j.Job, func(err error) {
		c.results <- result{r, err}
		done()
	})
}

// find returns what does j. Args nested so deeply that decoders give up, which only a plain INSERT can bring in,
// end the job and nothing else.
func (c *loop) find(j jobs.Claimed) (jobs.Handler, error) {
	if err := jobs.CheckArgsDepth(j.Args); err != nil {
		return nil, jobs.Permanent(err)
	}
	return c.handlers.Find(j.Name)
}

// ended takes what a handler returned.
func (c *loop) ended(r result) {
	if c.running[r.run.ID] != r.run {
		return // it was given up already
	}
	delete(c.running, r.run.ID)
	cause := context.Cause(r.run.ctx)
	r.run.cancel(nil)
	if r.run.lost {
		c.more = true // it, or its lane, may have had to wait for this
		return
	}
	c.finish(r.run, c.outcome(r.run, r.err, cause))
}

// finish keeps how an attempt ended until Postgres has acknowledged it, and logs it once the next Step is on its way.
func (c *loop) finish(r *run, end jobs.Ended) {
	end.Ref, end.Started = r.Ref(), r.started
	status := end.Kind
	if end.Kind == jobs.KindFail && r.Counted >= r.Limit { // the record will find so too
		end.Delay, status = 0, jobs.KindDead
	}
	c.finished = append(c.finished, end)
	c.fresh = true
	line := []any{"job", hclog.Quote(r.Name), "id", r.ID, "attempt", r.Attempt, "status", status,
		"duration", time.Since(r.started).Round(time.Microsecond)}
	if end.Error != "" {
		line = append(line, "error", hclog.Quote(end.Error))
	}
	if end.Delay > 0 {
		line = append(line, "retry_in", end.Delay.Round(time.Millisecond))
	}
	c.lines = append(c.lines, line)
}

// logEnded writes a line for each job that ended.
func (c *loop) logEnded() {
	for _, line := range c.lines {
		c.log.Info("job ended", line...)
	}
	c.lines = c.lines[:0]
}

// outcome decides how an attempt ended. What we ended ourselves is excused, whatever the handler made of it,
// unless it got its work done.
func (c *loop) outcome(r *run, err, cause error) jobs.Ended {
	switch {
	case err == nil:
		c.wentWell(r)
		return jobs.Ended{Kind: jobs.KindDone}
	case cause == errStopped || cause == errNotOurs:
		return jobs.Ended{Kind: jobs.KindExcused, Error: cause.Error()}
	case errors.As(cause, new(timedOut)) && !errors.Is(err, cause):
		err = fmt.Errorf("%w: %w", cause, err)
	}
	o := handler.Judge(err, c.backoff(r.Counted))
	if o.Kind == jobs.KindThrottled {
		return c.throttled(r, o)
	}
	return jobs.Ended{Kind: o.Kind, Delay: o.Delay, Error: o.Error}
}

// backoff is the delay before the next attempt of a job of which so many attempts count.
func (c *loop) backoff(counted int) time.Duration {
	return handler.Backoff(counted, c.set.Times.RetryBase, c.set.Times.RetryMax, rand.Float64())
}

// guardJobs gives up handlers that ignore the end of their context: a goroutine cannot be killed, a process can.
func (c *loop) guardJobs() {
	for _, r := range c.running {
		if !c.due(r.giveUp) {
			continue
		}
		delete(c.running, r.ID)
		if !r.lost {
			text := fmt.Sprintf("%s and did not end within %s more", timedOut(r.timeout), c.grace())
			c.finish(r, jobs.Ended{Kind: jobs.KindFail, Delay: c.backoff(r.Counted), Error: text})
		}
		c.log.Error("a handler ignores the end of its context; leaving for a new process", "job", hclog.Quote(r.Name), "id", r.ID)
		c.drain(c.set.ShutdownTimeout, wire.ExitLater)
	}
}

// grace is how long a handler may take to end after its context has. A command is killed by then; what else has its
// output open may still hold it up for a moment.
func (c *loop) grace() time.Duration {
	if c.handlers.Go() {
		return c.set.Worker.KillAfter + c.set.Times.Stuck
	}
	return c.set.Worker.KillAfter + 10*c.set.Times.Stuck
}

// unplan gives claimed jobs back that were not started: those that match, or all.
func (c *loop) unplan(match func(jobs.Claimed) bool) {
	c.planned = slices.DeleteFunc(c.planned, func(j jobs.Claimed) bool {
		if match != nil && !match(j) {
			return false
		}
		c.finished = append(c.finished, jobs.Ended{Ref: j.Ref(), Kind: jobs.KindExcused})
		c.fresh = true
		return true
	})
}

// holding names everything this process has claimed and has no acknowledged end for.
func (c *loop) holding() (refs []jobs.Ref) {
	for _, r := range c.running {
		if !r.lost {
			refs = append(refs, r.Ref())
		}
	}
	for _, j := range c.planned {
		refs = append(refs, j.Ref())
	}
	for _, e := range c.finished {
		refs = append(refs, e.Ref)
	}
	return refs
}

// keepOnly gives up everything but the jobs in ids: another has the queue, or brought the rest back.
func (c *loop) keepOnly(ids []int64) {
	var gone []int64
	for _, ref := range c.holding() {
		if !slices.Contains(ids, ref.ID) {
			gone = append(gone, ref.ID)
		}
	}
	c.lose(gone, errNotOurs)
}

// lose gives up jobs that are no longer ours. Their handlers are told to end; until they have, the same jobs
// are not claimed again.
func (c *loop) lose(ids []int64, cause error) {
	gone := func(id int64) bool { return slices.Contains(ids, id) }
	c.planned = slices.DeleteFunc(c.planned, func(j jobs.Claimed) bool { return gone(j.ID) })
	c.finished = slices.DeleteFunc(c.finished, func(e jobs.Ended) bool { return gone(e.ID) })
	for _, r := range c.running {
		if gone(r.ID) && !r.lost {
			r.lost = true
			r.cancel(cause)
			if giveUp := c.now.Add(c.grace()); giveUp.Before(r.giveUp) {
				r.giveUp = giveUp
			}
			c.log.Warn("job is not ours any more; ending it", "job", hclog.Quote(r.Name), "id", r.ID, "cause", cause)
		}
	}
}

func (c *loop) cancelAll(cause error) {
	for _, r := range c.running {
		r.cancel(cause)
	}
}

// skipped are the ids a claim must leave alone.
func (c *loop) skipped() []int64 {
	var ids []int64
	for id, r := range c.skip {
		if !c.due(r.until) {
			ids = append(ids, id)
		}
	}
	for id, r := range c.running {
		if r.lost {
			ids = append(ids, id)
		}
	}
	return ids
}

func timeout(w config.Worker, name string) time.Duration {
	if t := w.Job[name].Timeout; t > 0 {
		return t
	}
	return w.Timeout
}

func limits(w config.Worker) jobs.Limits {
	byName := map[string]int{}
	for name, j := range w.Job {
		if j.MaxAttempts > 0 {
			byName[name] = j.MaxAttempts
		}
	}
	return jobs.Limits{MaxAttempts: w.MaxAttempts, ByName: byName}
}
