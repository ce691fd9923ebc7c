package steward

import (
	"context"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"queuekeeper/config"
	"queuekeeper/handler"
	"queuekeeper/internal/procs"
	"queuekeeper/internal/wire"
	"queuekeeper/jobs"
)

// sweep brings back the running jobs of queues that nobody serves.
func (v *visit) sweep(ctx, last context.Context) error {
	find, cancel := context.WithTimeout(last, patience)
	defer cancel()
	orphans, err := v.schema.Orphans(find, v.conn, v.here)
	if err != nil {
		return err
	}
	given := v.now()
	for _, o := range orphans {
		if ctx.Err() != nil || given.serves(o.Queue) {
			continue
		}
		if err := v.sweepQueue(last, o); err != nil {
			return err
		}
	}
	return nil
}

// serves reports whether we have a child for the queue, or will: it brings back its jobs by itself, and knows better
// why they were left.
func (g given) serves(queue string) bool {
	i := slices.IndexFunc(g.picture.Children, func(c jobs.Child) bool { return c.Queue == queue })
	if i < 0 {
		return slices.ContainsFunc(g.file.Workers, func(w config.Worker) bool { return w.Queue == queue })
	}
	return served(g.picture.Children[i])
}

func served(c jobs.Child) bool { return c.State != jobs.ChildParked && c.State != jobs.ChildEnded }

// left names the deaths in queues of a picture that nobody serves any more.
func left(p jobs.Picture) string {
	var deaths []string
	for _, c := range slices.Concat(p.Children, p.Removed) {
		if n := len(c.Deaths); n > 0 && !served(c) {
			deaths = append(deaths, fmt.Sprint(c.Queue, " ", c.Deaths[n-1].N))
		}
	}
	return strings.Join(deaths, " ")
}

// deaths are those in a queue that we served: they tell why its jobs were left.
func (g given) deaths(queue string) []jobs.Death {
	for _, c := range slices.Concat(g.picture.Children, g.picture.Removed) {
		if c.Queue == queue {
			return c.Deaths
		}
	}
	return nil
}

// sweepQueue never takes a lease that lives. The error is one of the connection.
func (v *visit) sweepQueue(ctx context.Context, o jobs.Orphan) error {
	gone := o.Here && procs.Gone(o.Holder.PID, o.Holder.ProcessStart)
	if o.Leased && !gone {
		return nil
	}
	log := v.log.With("queue", o.Queue)
	if gone { // its commands may live; their jobs must not be started beside them
		if err := procs.KillMarked(o.Holder.PID, wire.Mark(o.Holder.Supervisor, o.Holder.N)); err != nil {
			log.Warn("commands of the earlier holder may still run", "error", hclog.Quote(err.Error()))
		}
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	given := v.now()
	ended, err := v.schema.Sweep(ctx, v.conn, o, jobs.Bid{
		Holder: v.here, TTL: v.file.Lease, Backoff: v.retryBackoff,
		Deaths: given.deaths(o.Queue), DeathsOf: given.picture.Supervisor,
	})
	var held *jobs.HeldError
	switch {
	case errors.As(err, &held): // somebody serves it by now
		return nil
	case err != nil && v.conn.IsClosed():
		return err
	case err != nil: // the other queues can do without this one
		log.Warn("jobs of a queue nobody serves stay running for now", "error", hclog.Quote(err.Error()))
		return nil
	}
	for _, e := range ended {
		log.Warn("job recovered", "id", e.ID, "attempt", e.Attempt, "status", e.Kind, "error", hclog.Quote(e.Error))
	}
	return nil
}

// retryBackoff is that of the children.
func (v *visit) retryBackoff(counted int) time.Duration {
	return handler.Backoff(counted, v.times.RetryBase, v.times.RetryMax, mathrand.Float64())
}
