// Package eventually lets a test wait for what another process or goroutine will do, where there is no channel
// to wait on.
package eventually

import (
	"testing"
	"time"
)

// OK calls check every few milliseconds until it returns nil. After within it fails the test at once, with the
// last error: that says what was got and what was wanted.
func OK(t testing.TB, within time.Duration, check func() error) {
	t.Helper()
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-deadline.C:
			t.Fatalf("not within %v: %v", within, err)
		case <-tick.C:
		}
	}
}
