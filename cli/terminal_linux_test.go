package cli_test

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"queuekeeper/internal/eventually"
)

// pty is a terminal: near is where a person sits, far where the program runs.
type pty struct {
	near, far *os.File

	mu  sync.Mutex
	all []byte
}

func terminal(t *testing.T) *pty {
	t.Helper()
	near, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(int(near.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(near.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	far, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	s := &pty{near: near, far: far}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(s, near) // until nobody has the far side open
	}()
	t.Cleanup(func() {
		far.Close()
		<-ended
		near.Close()
	})
	return s
}

// Write keeps what the program shows.
func (s *pty) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, b...)
	return len(b), nil
}

func (s *pty) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.all)
}

func (s *pty) shows(t *testing.T, text string) {
	t.Helper()
	eventually.OK(t, patience+30*time.Second, func() error {
		if all := s.text(); !strings.Contains(all, text) {
			return fmt.Errorf("screen: got\n%s\nwant %q in it", all, text)
		}
		return nil
	})
}

func (s *pty) types(t *testing.T, keys string) {
	t.Helper()
	if _, err := io.WriteString(s.near, keys); err != nil {
		t.Fatal(err)
	}
}
