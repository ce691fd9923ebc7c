package jobs_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"queuekeeper/internal/eventually"
	"queuekeeper/jobs"
)

// wire is a connection to Postgres that can be told to break after so many messages in one direction. What passed
// before has arrived, as it does when a network fails or a process is killed.
type wire struct {
	net.Conn
	sent, received messages
}

// messages counts what goes in one direction. Armed and read by the one who uses the connection.
type messages struct {
	armed  bool
	left   int
	header []byte // of the message that is passing
	body   int    // bytes of it still to come
}

// pass returns how much of data belongs to messages that may still pass.
func (m *messages) pass(data []byte) int {
	if !m.armed {
		return len(data)
	}
	for i := 0; i < len(data); {
		if m.body > 0 {
			n := min(m.body, len(data)-i)
			m.body, i = m.body-n, i+n
			continue
		}
		if len(m.header) == 0 && m.left == 0 {
			return i
		}
		// A byte of type, then a length that counts itself.
		m.header, i = append(m.header, data[i]), i+1
		if len(m.header) == 5 {
			m.body, m.header, m.left = int(binary.BigEndian.Uint32(m.header[1:]))-4, nil, m.left-1
		}
	}
	return len(data)
}

func (w *wire) Write(data []byte) (int, error) {
	n := w.sent.pass(data)
	if n == len(data) {
		return w.Conn.Write(data)
	}
	n, _ = w.Conn.Write(data[:n])
	w.Close()
	return n, io.ErrClosedPipe
}

func (w *wire) Read(data []byte) (int, error) {
	n, err := w.Conn.Read(data)
	if passed := w.received.pass(data[:n]); passed < n {
		w.Close()
		return passed, io.ErrUnexpectedEOF
	}
	return n, err
}

// wired connects as a child does, over a connection that can be cut.
func (s *site) wired() (*pgx.Conn, *wire) {
	s.Helper()
	config, err := pgx.ParseConfig(s.url)
	finish(s.T, err)
	config.TLSConfig, config.Fallbacks = nil, nil // to see the messages
	w := &wire{}
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		var dialer net.Dialer
		var err error
		w.Conn, err = dialer.DialContext(ctx, network, address)
		return w, err
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	finish(s.T, err)
	s.Cleanup(func() { conn.Close(ctx) })
	finish(s.T, jobs.PrepareSession(context.Background(), conn, "worker", 30*time.Second))
	return conn, w
}

// left waits until the session of a connection is gone from the server.
func (s *site) left(pid uint32) {
	s.Helper()
	eventually.OK(s.T, 10*time.Second, func() error {
		if column(s.T, s.look, `select count(*) from pg_stat_activity where pid = $1`, pid) != "0" {
			return fmt.Errorf("session %d is there, want it gone", pid)
		}
		return nil
	})
}

// Whatever the message after which the connection breaks, on the way there or back: the child's next connection
// acquires, and goes on with what the database and the child can both answer for.
func TestACutAtAnyMessageLosesNothing(t *testing.T) {
	s := newSite(t)
	s.audit()
	for _, o := range operations {
		for _, direction := range []string{"to Postgres", "from Postgres"} {
			cut := func(after int) (whole bool) {
				s.each(fmt.Sprintf("%s cut after %d %s", o.name, after, direction), func(s *site) {
					conn, w := s.wired()
					a := s.racing(conn)
					pid := conn.PgConn().PID()
					m := &w.sent
					if direction == "from Postgres" {
						m = &w.received
					}
					m.armed, m.left = true, after
					err := o.do(a, conn)
					if whole = err == nil; !whole && !conn.IsClosed() {
						s.Errorf("%s: %v, and the connection is still used", o.name, err)
					}

					// At once: the old session may still be at work, and is fenced.
					finish(s.T, a.acquire(s.worker()))
					a.holds()
					conn.Close(ctx)
					s.left(pid)
					a.holds()
					a.finishAll()
					a.agrees()
				})
				return whole
			}
			for after := 0; !cut(after) && !t.Failed(); after++ {
			}
		}
	}
}
