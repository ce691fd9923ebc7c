package child

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"queuekeeper/jobs"
	"queuekeeper/migrations"
)

// connection is what the loop knows of its connection to the database.
type connection struct {
	online   bool
	schema   string        // where the tables are
	poll     time.Duration // the poll floor: short where notifications do not arrive
	deaf     bool          // they do not
	holder   jobs.Holder   // of the next connection to acquire the queue
	failures int           // of operations, in a row
}

// maxConnect is how long a connection, and the first word on it, may take: well under wire.Times.Boot.
const maxConnect = 10 * time.Second

// connected is the answer to connect.
type connected struct {
	schema  string
	listens bool
	err     error
}

// connect makes the connection: settings of the session first, then LISTEN, so that nothing that is enqueued
// after the first claim can be missed.
func (c *loop) connect() op {
	url, schema, channel, lease := c.set.DatabaseURL, c.set.Schema, "jobs_"+c.set.Worker.Queue, c.set.Lease
	name := "queuekeeper " + c.set.Worker.Queue
	return func(l *link) any {
		l.close()
		l.heard.And(^uint32(heardBroken))
		ctx, cancel := context.WithTimeout(context.Background(), min(lease/3, maxConnect))
		defer cancel()
		schema, listens, err := l.connect(ctx, url, schema, channel, name, lease)
		if err != nil {
			l.close()
		}
		return connected{schema, listens, err}
	}
}

func (l *link) connect(ctx context.Context, url, schema, channel, name string, lease time.Duration) (string, bool, error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return "", false, err
	}
	config.OnNotification = func(_ *pgconn.PgConn, n *pgconn.Notification) { l.notified(n.Payload) }
	if l.conn, err = pgx.ConnectConfig(ctx, config); err != nil {
		return "", false, err
	}
	if err := jobs.PrepareSession(ctx, l.conn, name, lease); err != nil {
		return "", false, err
	}
	state, err := migrations.Check(ctx, l.conn, schema)
	if err != nil {
		return "", false, err
	}
	l.schema = state.Schema
	listens, err := l.tryListen(ctx, channel)
	return state.Schema, listens, err
}

// tryListen listens on the queue's channel and finds out, by a word to itself, whether notifications arrive.
func (l *link) tryListen(ctx context.Context, channel string) (bool, error) {
	if _, err := l.conn.Exec(ctx, "listen "+pgx.Identifier{channel}.Sanitize()); err != nil {
		return false, fmt.Errorf("listen: %w", err)
	}
	l.word = "hello " + rand.Text()
	if _, err := l.conn.Exec(ctx, "select pg_notify($1, $2)", channel, l.word); err != nil {
		return false, fmt.Errorf("notify: %w", err)
	}
	wait, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	for l.word != "" {
		err := l.conn.PgConn().WaitForNotification(wait)
		if l.conn.IsClosed() {
			return false, fmt.Errorf("listen: %w", err)
		}
		if err != nil {
			return false, nil
		}
	}
	return true, nil
}

// connectedNow takes the answer to connect.
func (c *loop) connectedNow(a connected) {
	if a.err != nil {
		c.failed(a.err)
		return
	}
	c.online, c.schema, c.bidAt = true, a.schema, time.Time{}
	c.poll, c.deaf = c.set.Worker.PollInterval, !a.listens
	if c.deaf {
		c.poll = min(c.poll, c.set.Times.Unlistened)
		c.log.Warn("notifications do not arrive here; polling instead", "every", c.poll)
	}
}
