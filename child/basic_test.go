package child

import (
	"context"
	"errors"
	"testing"

	"queuekeeper/jobs"
)

func TestJobsAreDoneInOrder(t *testing.T) {
	r := newRig(t)
	var order []int64
	r.handle("note", func(_ context.Context, j jobs.Job) error { order = append(order, j.ID); return nil })
	r.insert("note", 20)
	r.start()
	r.done(20)
	if code := r.stop(); code != 0 {
		t.Errorf("exit status %d, want 0", code)
	}
	for i, id := range order {
		if id != int64(i+1) {
			t.Fatalf("order %v, want 1 to 20", order)
		}
	}
	if held := value[bool](r, `select supervisor is not null from queues`); held {
		t.Error("the lease is still held after the child left")
	}
}

func TestFailedJobIsTriedAgainUntilDead(t *testing.T) {
	r := newRig(t)
	r.worker.MaxAttempts = 3
	r.handle("fail", func(context.Context, jobs.Job) error { return errors.New("no luck") })
	r.insert("fail", 1)
	r.start()
	r.until(`select state = 'dead' from jobs`)
	if got := value[int](r, `select attempts from jobs`); got != 3 {
		t.Errorf("%d attempts, want 3", got)
	}
	if got := value[string](r, `select last_error from jobs`); got != "no luck" {
		t.Errorf("last_error %q, want %q", got, "no luck")
	}
}
