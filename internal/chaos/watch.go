package main

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"queuekeeper/internal/tryout"
)

// watch looks all the time who holds each queue, and measures how long one that has lost its holder is without a new
// one: whoever acquires it has, in the same transaction, brought its jobs back.
type watch struct {
	mu    sync.Mutex
	held  map[string]holding
	lost  map[string]loss
	worst map[string]time.Duration // by what the holder was lost to
	away  bool                     // Postgres is
}

type holding struct {
	queue      string
	epoch      int64
	supervisor string // "": nobody holds it
	pid        int    // of the child
}

// loss is the end of a holder.
type loss struct {
	to    string
	at    time.Time
	epoch int64
}

func newWatch() *watch {
	return &watch{held: map[string]holding{}, lost: map[string]loss{}, worst: map[string]time.Duration{}}
}

const holdingSQL = `select queue, epoch, coalesce(supervisor, ''), coalesce(pid, 0) from queues`

const lookEvery = 10 * time.Millisecond

func (w *watch) run(ctx context.Context, url string) {
	db := patient{url: url}
	defer db.close()
	for tryout.Pause(ctx, lookEvery) {
		_ = db.do(ctx, func(ctx context.Context, conn *pgx.Conn) error {
			rows, err := conn.Query(ctx, holdingSQL)
			if err != nil {
				return err
			}
			all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (h holding, err error) {
				return h, row.Scan(&h.queue, &h.epoch, &h.supervisor, &h.pid)
			})
			w.look(all)
			return err
		})
	}
}

func (w *watch) look(all []holding) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, h := range all {
		w.held[h.queue] = h
		if l, lost := w.lost[h.queue]; lost && h.epoch > l.epoch {
			w.measure(h.queue)
		}
	}
}

// holder is who holds the queue.
func (w *watch) holder(queue string) holding {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.held[queue]
}

// loses notes that the holder of a queue is about to be lost.
func (w *watch) loses(queue, to string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if h := w.held[queue]; h.supervisor != "" && !w.away {
		w.lost[queue] = loss{to, time.Now(), h.epoch}
	}
}

// disturbed notes that something else happens to a queue, or to all: what it waits for is then due to that as well.
// It has waited so long in any case.
func (w *watch) disturbed(queue string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for q := range w.lost {
		if queue == everyQueue || queue == q {
			w.measure(q)
		}
	}
}

// everyQueue stands for all of them.
const everyQueue = ""

func (w *watch) measure(queue string) {
	l := w.lost[queue]
	w.worst[l.to] = max(w.worst[l.to], time.Since(l.at))
	delete(w.lost, queue)
}

// blind says that Postgres is away: nobody can acquire anything, whoever is lost.
func (w *watch) blind(is bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.away = is
}
