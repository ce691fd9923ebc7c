package child

import (
	"context"
	"errors"
	"testing"
	"time"

	"queuekeeper/jobs"
)

// A job that goes back without a delay is looked for as soon as it may start, not at the poll floor: nobody else tells
// of it.
func TestJobThatGoesBackIsFoundWithoutThePollFloor(t *testing.T) {
	for name, err := range map[string]error{
		"queue paused":  jobs.ThrottledIn(jobs.ScopeQueue, 300*time.Millisecond, errors.New("429")),
		"lane paused":   jobs.ThrottledIn(jobs.ScopeLane, 300*time.Millisecond, errors.New("429")),
		"retry at once": jobs.RetryAfter(0, errors.New("again")),
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.worker.Concurrency = 4 // so that the claim knows that there is no more
			r.worker.PollInterval = time.Hour
			r.handle("do", func(_ context.Context, j jobs.Job) error {
				if j.Attempt == 1 {
					return err
				}
				return nil
			})
			r.insert("do", 1)
			r.start()
			r.done(1)
		})
	}
}
