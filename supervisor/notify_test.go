package supervisor

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/hashicorp/go-hclog"
)

// manager is the other end of NOTIFY_SOCKET.
type manager struct{ conn *net.UnixConn }

// listen has NOTIFY_SOCKET name a socket, a path or an abstract name, and listens there.
func listen(t *testing.T, socket string) *manager {
	t.Helper()
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatalf("listen: %v", err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	t.Setenv("NOTIFY_SOCKET", socket)
	return &manager{conn}
}

// socketPath is short: t.TempDir has the name of the test in it, and a socket's path has 107 bytes.
func socketPath(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "notify")
	if err != nil {
		t.Fatalf("make directory: %v", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "socket")
}

// next is the next datagram; one that has to be there or come.
func (m *manager) next(t *testing.T) string {
	t.Helper()
	return m.read(t, time.Now().Add(patience))
}

// read returns "" if there is none until then.
func (m *manager) read(t *testing.T, until time.Time) string {
	t.Helper()
	_ = m.conn.SetReadDeadline(until)
	buffer := make([]byte, 1<<16)
	n, err := m.conn.Read(buffer)
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("read notice: %v", err)
	}
	return string(buffer[:n])
}

// rest are the datagrams that are there. It is for when nobody writes any more: they are there or never come.
func (m *manager) rest(t *testing.T) (notices []string) {
	t.Helper()
	for {
		notice := m.read(t, time.Now().Add(20*time.Millisecond))
		if notice == "" {
			return notices
		}
		notices = append(notices, notice)
	}
}

// fill leaves no room in the socket, and returns how many datagrams are in it.
func (m *manager) fill(t *testing.T) (count int) {
	t.Helper()
	conn, err := net.DialUnix("unixgram", nil, m.conn.LocalAddr().(*net.UnixAddr))
	if err != nil {
		t.Fatalf("dial: %v", err)
	}
	defer conn.Close()
	for {
		_ = conn.SetWriteDeadline(time.Now().Add(20 * time.Millisecond))
		_, err := conn.Write([]byte("full"))
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return count
		}
		if err != nil {
			t.Fatalf("fill socket: %v", err)
		}
		count++
	}
}

// logged is a log, to be read when nobody writes to it any more, and its lines.
func logged() (hclog.Logger, func() int) {
	var text bytes.Buffer
	return hclog.New(&hclog.LoggerOptions{Output: &text}), func() int { return bytes.Count(text.Bytes(), []byte("\n")) }
}

// inTime fails the test if do waits for something that does not come.
func inTime(t *testing.T, what string, do func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		do()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatalf("%s: got no end within %v, want one", what, patience)
	}
}

// monotonic is the time that systemd compares with.
func monotonic(t *testing.T, assignment string) int {
	t.Helper()
	match := regexp.MustCompile(`^MONOTONIC_USEC=(\d+)$`).FindStringSubmatch(strings.TrimSpace(assignment))
	if match == nil {
		t.Fatalf("time of a reload: got %q, want MONOTONIC_USEC=…", assignment)
	}
	usec, _ := strconv.Atoi(match[1])
	return usec
}

func TestManagerIsToldEverythingInOrder(t *testing.T) {
	sockets := map[string]string{"path": socketPath(t)}
	if runtime.GOOS == "linux" {
		sockets["abstract"] = fmt.Sprintf("@queuekeeper-notify-%d", os.Getpid())
	}
	for name, socket := range sockets {
		t.Run(name, func(t *testing.T) {
			m := listen(t, socket)
			log, lines := logged()
			n := newNotifier(log)

			n.status("starting")
			n.status("starting")
			n.ready("3 queues")
			n.status("3 queues")
			n.alive()
			before := monotonic(t, daemon.SdNotifyMonotonicUsec())
			n.reloading()
			after := monotonic(t, daemon.SdNotifyMonotonicUsec())
			n.ready("4 queues")
			n.stopping()

			for _, want := range []string{"STATUS=starting", "READY=1\nSTATUS=3 queues", "WATCHDOG=1"} {
				if got := m.next(t); got != want {
					t.Errorf("notice: got %q, want %q", got, want)
				}
			}
			reload := m.next(t)
			what, at, _ := strings.Cut(reload, "\n")
			if usec := monotonic(t, at); what != "RELOADING=1" || usec < before || usec > after {
				t.Errorf("notice of a reload: got %q, want RELOADING=1 and a time from %d to %d", reload, before, after)
			}
			for _, want := range []string{"READY=1\nSTATUS=4 queues", "STOPPING=1"} {
				if got := m.next(t); got != want {
					t.Errorf("notice: got %q, want %q", got, want)
				}
			}
			n.close()
			if got := m.rest(t); got != nil {
				t.Errorf("further notices: got %q, want none", got)
			}
			if lines() != 0 {
				t.Errorf("lines in the log: got %d, want none", lines())
			}
		})
	}
}

func TestManagerThatNeverReadsHoldsNobodyUp(t *testing.T) {
	m := listen(t, socketPath(t))
	full := m.fill(t)
	log, lines := logged()
	n := newNotifier(log)
	inTime(t, "notices to nobody", func() {
		for i := range 10 * maxNotices {
			n.status(strconv.Itoa(i))
		}
	})
	inTime(t, "close with nobody reading", n.close)
	n.alive() // and nothing after the end does harm
	n.close()
	if got := lines(); got != 1 {
		t.Errorf("lines in the log: got %d, want 1", got)
	}
	if got := len(m.rest(t)); got != full {
		t.Errorf("datagrams in the socket: got %d, want %d", got, full)
	}
}

func TestManagerThatReadsAgainIsTold(t *testing.T) {
	m := listen(t, socketPath(t))
	full := m.fill(t)
	log, _ := logged()
	n := newNotifier(log)
	defer n.close()
	said := 0
	for n.say(strconv.Itoa(said)) {
		said++
	}
	for range full {
		m.next(t)
	}
	for i := range said {
		if got, want := m.next(t), strconv.Itoa(i); got != want {
			t.Fatalf("notice %d: got %q, want %q", i, got, want)
		}
	}
	n.ready("reloaded")
	if got, want := m.next(t), "READY=1\nSTATUS=reloaded"; got != want {
		t.Errorf("notice after those: got %q, want %q", got, want)
	}
}

func TestWhatIsQueuedAtTheEndGoesOut(t *testing.T) {
	m := listen(t, socketPath(t))
	full := m.fill(t)
	log, lines := logged()
	n := newNotifier(log)
	n.last = patience
	n.status("draining")
	n.stopping()
	closed := make(chan struct{})
	go func() {
		n.close()
		close(closed)
	}()
	for range full {
		m.next(t)
	}
	<-closed
	if got, want := m.rest(t), []string{"STATUS=draining", "STOPPING=1"}; !slices.Equal(got, want) {
		t.Errorf("notices at the end: got %q, want %q", got, want)
	}
	if got := lines(); got != 0 {
		t.Errorf("lines in the log: got %d, want none", got)
	}
}

func TestStatusThatFoundNoRoomIsSaidAgain(t *testing.T) {
	n := &notifier{log: hclog.NewNullLogger(), notices: make(chan string, 1)}
	n.stopping()
	n.status("lost")
	<-n.notices
	n.status("lost")
	if len(n.notices) != 1 {
		t.Errorf("notices queued for a status that was lost before: got %d, want 1", len(n.notices))
	}
}

func TestManagerThatIsGoneIsLoggedOnce(t *testing.T) {
	m := listen(t, socketPath(t))
	log, lines := logged()
	n := newNotifier(log)
	n.ready("3 queues")
	m.next(t)
	_ = m.conn.Close()
	for range 10 {
		n.alive()
	}
	n.close()
	if got := lines(); got != 1 {
		t.Errorf("lines in the log: got %d, want 1", got)
	}
}

func TestMissingSocketIsLoggedOnce(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", socketPath(t))
	log, lines := logged()
	n := newNotifier(log)
	n.ready("3 queues")
	n.close()
	if got := lines(); got != 1 {
		t.Errorf("lines in the log: got %d, want 1", got)
	}
}

func TestWithoutManagerNothingIsDone(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	t.Setenv("WATCHDOG_USEC", "2000000")
	log, lines := logged()
	n := newNotifier(log)
	n.ready("3 queues")
	n.reloading()
	n.status("4 queues")
	n.stopping()
	n.alive()
	if got := n.ticks(); got != nil {
		t.Errorf("ticks: got some, want nil")
	}
	stacks := make([]byte, 1<<20)
	if stacks = stacks[:runtime.Stack(stacks, true)]; bytes.Contains(stacks, []byte("notifier")) {
		t.Errorf("goroutines: got one of a notifier, want none:\n%s", stacks)
	}
	n.close()
	if got := lines(); got != 0 {
		t.Errorf("lines in the log: got %d, want none", got)
	}
}

func TestWatchdogIsFedTwiceInItsTime(t *testing.T) {
	self, other := strconv.Itoa(os.Getpid()), strconv.Itoa(os.Getppid())
	for _, c := range []struct {
		usec, pid string
		every     time.Duration
		lines     int
	}{
		{"", "", 0, 0},
		{"2000000", "", time.Second, 0},
		{"2000000", self, time.Second, 0},
		{"2000000", other, 0, 0},
		{"soon", self, 0, 1},
		{"-1", self, 0, 1},
	} {
		t.Run(c.usec+" of "+c.pid, func(t *testing.T) {
			listen(t, socketPath(t))
			t.Setenv("WATCHDOG_USEC", c.usec)
			t.Setenv("WATCHDOG_PID", c.pid)
			log, lines := logged()
			n := newNotifier(log)
			defer n.close()
			if got := n.every(); got != c.every {
				t.Errorf("every: got %v, want %v", got, c.every)
			}
			if got := n.ticks() != nil; got != (c.every > 0) {
				t.Errorf("ticks: got some %v, want %v", got, c.every > 0)
			}
			if got := lines(); got != c.lines {
				t.Errorf("lines in the log: got %d, want %d", got, c.lines)
			}
		})
	}
}

// systemd drops the whole notice for what is not so.
func TestStatusIsAlwaysOneGoodLine(t *testing.T) {
	for _, text := range []string{
		"queues.toml:3: faults\nREADY=1\r\nSTOPPING=1",
		"nul \x00 escape \x1b[31m",
		"\xff\xfe not UTF-8",
		strings.Repeat("\xff", 10000),
		strings.Repeat("x", maxStatusText-1) + "ö",
	} {
		got := statusNotice(text)
		if len(got) > 4000 || !utf8.ValidString(got) || strings.ContainsAny(got, "\n\r\x00\x1b") {
			t.Errorf("notice of status %.40q: got %d bytes, %.80q, want one short line of UTF-8", text, len(got), got)
		}
	}
	if got, want := statusNotice("größer"), "STATUS=größer"; got != want {
		t.Errorf("notice of a good status: got %q, want %q", got, want)
	}
}
