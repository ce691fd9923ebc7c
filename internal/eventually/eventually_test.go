package eventually_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"queuekeeper/internal/eventually"
)

// recorder is a test that notes how it was failed.
type recorder struct {
	testing.TB
	failure string
}

func (r *recorder) Helper() {}

func (r *recorder) Fatalf(format string, args ...any) { r.failure = fmt.Sprintf(format, args...) }

func TestOKReturnsWithTheFirstSuccess(t *testing.T) {
	tries := 0
	eventually.OK(t, time.Minute, func() error {
		if tries++; tries < 3 {
			return errors.New("not yet")
		}
		return nil
	})
	if tries != 3 {
		t.Errorf("tries: got %d, want 3", tries)
	}
}

func TestOKFailsWithTheLastError(t *testing.T) {
	r := &recorder{TB: t}
	tries := 0
	eventually.OK(r, 20*time.Millisecond, func() error {
		if r.failure != "" {
			return nil // a real Fatalf would not come back
		}
		tries++
		return fmt.Errorf("try %d", tries)
	})
	if want := fmt.Sprintf("not within 20ms: try %d", tries); r.failure != want {
		t.Errorf("failure: got %q, want %q", r.failure, want)
	}
}
