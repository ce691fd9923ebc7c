package child

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"queuekeeper/internal/eventually"
	"queuekeeper/internal/procs"
	"queuekeeper/internal/wire"
	"queuekeeper/jobs"
)

// marksEnv has the file in which a child in a process of its own notes its starts.
const marksEnv = "QUEUEKEEPER_TEST_MARKS"

// A child of a test that marks has other handlers than TestMain gives it.
func init() {
	if path := os.Getenv(marksEnv); path != "" && len(os.Args) > 1 && os.Args[1] == "child" {
		os.Exit(Main(jobs.Handlers{queue: {"Mark": marks(path, false), "Flaky": marks(path, true)}}))
	}
}

// marks is a handler that notes its start, on a clock that all processes share, and takes a moment. A flaky one fails
// the first attempt of every fifth job.
func marks(path string, flaky bool) jobs.Handler {
	return func(ctx context.Context, j jobs.Job) error {
		at := procs.BootClock() - time.Since(startOf(ctx))
		file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		defer file.Close()
		if _, err := fmt.Fprintln(file, int64(at), j.ID, j.Lane, j.Attempt); err != nil {
			return err
		}
		<-time.After(3 * time.Millisecond)
		if flaky && j.ID%5 == 0 && j.Attempt == 1 {
			return errors.New("flaky")
		}
		return nil
	}
}

// marking is a child in a process of its own, and its successors, that note their starts.
type marking struct {
	*process
	path string
}

func newMarking(t *testing.T) *marking {
	path := filepath.Join(t.TempDir(), "marks")
	t.Setenv(marksEnv, path)
	m := &marking{newProcess(t), path}
	m.set.Worker.KillAfter = 5 * time.Second
	m.set.Times.ReconnectMin = time.Millisecond
	return m
}

// starts are those so far.
func (m *marking) starts() (all []start) {
	m.t.Helper()
	text, err := os.ReadFile(m.path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		m.t.Fatal(err)
	}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		var at int64
		var s start
		if _, err := fmt.Sscan(lines.Text(), &at, &s.id, &s.lane, &s.attempt); err != nil {
			m.t.Fatalf("mark %q: %v", lines.Text(), err)
		}
		s.at = time.Unix(0, at)
		all = append(all, s)
	}
	return all
}

// killAt kills the child as soon as there are so many starts, and puts the next one into its place.
func (m *marking) killAt(n int) {
	m.t.Helper()
	eventually.OK(m.t, 20*time.Second, func() error {
		if got := len(m.starts()); got < n {
			return fmt.Errorf("starts: got %d, want %d; log:\n%s", got, n, m.log)
		}
		return nil
	})
	if err := m.cmd.Process.Kill(); err != nil {
		m.t.Fatal(err)
	}
	_ = m.cmd.Wait() // its error is the signal
	m.set.Deaths = append(m.set.Deaths, jobs.Death{N: m.set.N, Cause: "child killed by signal 9"})
	m.set.N++
	for range m.bye { // until nothing listens to the dead one any more
	}
	m.bye = make(chan wire.Status, 1)
	m.start()
}
