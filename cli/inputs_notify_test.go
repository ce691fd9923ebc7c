package cli_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// A reload is over when that is said, or `systemctl reload` waits for ever, and the beginning is believed only with a
// time that is not before the signal.
func TestProcessManagerIsToldOfEachReloadFaultyOrNot(t *testing.T) {
	t.Parallel()
	m := newManager(t)
	s := newSite(t, twoQueues)
	p := s.run("NOTIFY_SOCKET=" + m.LocalAddr().String())
	m.says(t, `^READY=1\nSTATUS=2 queues: 2 ready$`)
	for _, reload := range []struct{ file, want string }{
		{twoQueues, `^READY=1\nSTATUS=2 queues: 2 ready$`},
		{twoQueues + "[[wor", `^READY=1\nSTATUS=2 queues: 2 ready; reload failed: queues\.toml:\d+: `},
		{twoQueues + "burst = 2\nmax_jobs_per_second = 5\n", `^READY=1\nSTATUS=2 queues: 2 ready$`},
	} {
		s.write("queues.toml", reload.file)
		before := monotonic(t)
		p.signal(syscall.SIGHUP)
		said := m.says(t, `^RELOADING=1\nMONOTONIC_USEC=(\d+)$`)
		if at, _ := strconv.Atoi(said[1]); at < before || at > monotonic(t) {
			t.Errorf("time of a reload: got %d, want one from %d on", at, before)
		}
		m.says(t, reload.want)
	}
	p.signal(syscall.SIGTERM)
	m.says(t, `^STOPPING=1$`)
	p.exits(0)
	s.cleanEnd("")
}

// manager is the other end of NOTIFY_SOCKET.
type manager struct{ *net.UnixConn }

func newManager(t *testing.T) manager {
	t.Helper()
	dir, err := os.MkdirTemp("", "notify") // short, for the path of a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(dir, "socket"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return manager{conn}
}

// says waits for what the manager is told next, but for how things are, and returns its match.
func (m manager) says(t *testing.T, pattern string) []string {
	t.Helper()
	if err := m.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	buffer := make([]byte, 1<<16)
	for {
		n, err := m.Read(buffer)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("notice: got none, want one like %q", pattern)
		}
		if err != nil {
			t.Fatal(err)
		}
		notice := string(buffer[:n])
		if strings.HasPrefix(notice, "STATUS=") {
			continue
		}
		match := regexp.MustCompile(pattern).FindStringSubmatch(notice)
		if match == nil {
			t.Fatalf("notice: got %q, want one like %q", notice, pattern)
		}
		return match
	}
}

// monotonic is now, in microseconds, on the clock that systemd compares with.
func monotonic(t *testing.T) int {
	t.Helper()
	now, err := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(daemon.SdNotifyMonotonicUsec(), "MONOTONIC_USEC=")))
	if err != nil {
		t.Fatal(err)
	}
	return now
}
