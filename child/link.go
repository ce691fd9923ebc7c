package child

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"queuekeeper/jobs"
)

// link is the child's one connection. A goroutine of its own runs one operation at a time on it, so that a
// hanging statement never deafens the loop, and waits for notifications in between.
type link struct {
	ops     chan op       // capacity 1: the loop sends the next only after the result of the last
	results chan any      // capacity 1: for the same reason it always has room
	told    chan struct{} // capacity 1: something new is in heard
	heard   atomic.Uint32 // bits of hearing

	mu        sync.Mutex
	interrupt context.CancelFunc // ends the wait for notifications

	// For operations and the goroutine only.
	conn   *pgx.Conn   // nil: not connected
	queue  *jobs.Queue // nil: not held by this connection
	schema string      // what the payload of a notification of new jobs must be
	word   string      // the payload that tells that notifications arrive; "" once it came
}

// op is one operation on the connection. What it returns goes to the loop.
type op func(*link) any

// hearing is what notifications have said since the loop last asked.
type hearing uint32

const (
	heardJobs   hearing = 1 << iota // there are new jobs
	heardLease                      // somebody released the queue
	heardCancel                     // somebody cancelled a job
	heardPauses                     // somebody paused the queue or a lane, or lifted a pause
	heardBroken                     // the connection is gone
)

func newLink() *link {
	return &link{ops: make(chan op, 1), results: make(chan any, 1), told: make(chan struct{}, 1)}
}

// run serves operations until a nil one comes.
func (l *link) run() {
	for {
		l.listen()
		o := <-l.ops
		if o == nil {
			l.close()
			return
		}
		l.results <- o(l)
	}
}

// listen waits for notifications until an operation has come.
func (l *link) listen() {
	if l.conn == nil {
		return
	}
	wait, cancel := context.WithCancel(context.Background())
	defer cancel()
	l.mu.Lock()
	l.interrupt = cancel
	l.mu.Unlock()
	// Only now look for an operation: whoever sent one before this line is seen here, whoever sends one after it
	// finds interrupt set.
	for len(l.ops) == 0 {
		err := l.conn.PgConn().WaitForNotification(wait)
		if err == nil || wait.Err() != nil && !l.conn.IsClosed() {
			continue
		}
		l.close()
		l.hear(heardBroken)
		return
	}
}

// do sends one operation. The loop calls it only after the result of the last.
func (l *link) do(o op) {
	l.ops <- o
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.interrupt != nil {
		l.interrupt()
	}
}

func (l *link) hear(what hearing) {
	l.heard.Or(uint32(what))
	select {
	case l.told <- struct{}{}:
	default:
	}
}

// take returns what was heard since the last call.
func (l *link) take() hearing { return hearing(l.heard.Swap(0)) }

// notified is called by pgx whenever a notification arrives, in the middle of an operation too.
func (l *link) notified(payload string) {
	// Not a switch: a schema may be called lease.
	if payload == l.schema {
		l.hear(heardJobs)
	}
	if payload == "lease" {
		l.hear(heardLease)
	}
	if payload == "cancel" {
		l.hear(heardCancel)
	}
	if payload == "pause" {
		l.hear(heardPauses)
	}
	if payload == l.word {
		l.word = ""
	}
}

func (l *link) close() {
	if l.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	_ = l.conn.Close(ctx) // a goodbye, if it still gets through
	l.conn, l.queue = nil, nil
}

// errOffline is the answer to an operation whose connection is gone.
var errOffline = errors.New("no connection to the database")

// withQueue does something to the queue this connection holds.
func (l *link) withQueue(within time.Duration, do func(context.Context, *jobs.Queue) error) error {
	if l.queue == nil {
		return errOffline
	}
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	return l.checked(do(ctx, l.queue))
}

const readOnlySQLTransaction = "25006"

// checked closes a connection that an operation broke, or that leads to a database which only reads: a session
// keeps that for ever, while a new one may find the database well again, or another one in its place. The error
// says so.
func (l *link) checked(err error) error {
	var pg *pgconn.PgError
	readOnly := errors.As(err, &pg) && pg.Code == readOnlySQLTransaction
	if err == nil || !l.conn.IsClosed() && !readOnly {
		return err
	}
	l.close()
	return fmt.Errorf("%w: %w", errOffline, err)
}
