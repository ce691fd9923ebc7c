package handler

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"

	"queuekeeper/jobs"
)

// LE07 a and d.
func TestPanicAndGoexitAreFailuresOfTheJob(t *testing.T) {
	for _, c := range []struct {
		about string
		do    func()
		want  string
	}{
		{"value", func() { panic("boom") }, "panic: boom\n"},
		{"nil", func() { panic(nil) }, "panic: panic called with nil argument"},
		{"error", func() { panic(errors.New("boom")) }, "panic: boom\n"},
		{"permanent error", func() { panic(jobs.Permanent(errors.New("boom"))) }, "panic: boom\n"},
		{"nil pointer", func() { var j *jobs.Job; j.ID = 1 }, "panic: runtime error: invalid memory address"},
		{"error that panics", func() { panic(panicking{}) }, "panic: %!v(PANIC=Error method: no text)\n"},
		{"Goexit", runtime.Goexit, "handler ended its goroutine by runtime.Goexit"},
	} {
		t.Run(c.about, func(t *testing.T) {
			h := func(context.Context, jobs.Job) error { c.do(); return nil }
			err := outcomeOf(context.Background(), h, jobs.Job{})
			if err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Fatalf("Run: got %v, want an error beginning with %q", err, c.want)
			}
			if got := Judge(err, 1); got.Kind != jobs.KindFail || got.Delay != 1 {
				t.Errorf("outcome: got %s after %d, want fail after the back-off, 1", got.Kind, got.Delay)
			}
			if strings.HasPrefix(c.want, "panic") && !strings.Contains(err.Error(), "handler/run_test.go:") {
				t.Errorf("error: got %q, want the place of the panic in it", err)
			}
		})
	}
}

func TestPanicShowsItsOwnPlaceFirst(t *testing.T) {
	err := outcomeOf(context.Background(), func(context.Context, jobs.Job) error { panic("boom") }, jobs.Job{})
	lines := strings.Split(err.Error(), "\n")
	if len(lines) < 3 || !strings.Contains(lines[1], "TestPanicShowsItsOwnPlaceFirst") {
		t.Errorf("first call shown: got %q, want the function that panicked", lines)
	}
	if len(lines) > 1+stackLines {
		t.Errorf("length: got %d lines, want at most %d", len(lines), 1+stackLines)
	}
}

func TestErrorOfTheHandlerIsHandedOn(t *testing.T) {
	h := func(_ context.Context, job jobs.Job) error { return jobs.Permanent(errors.New("no " + job.Name)) }
	if err := outcomeOf(context.Background(), h, jobs.Job{Name: "Sync"}); !jobs.IsPermanent(err) || err.Error() != "no Sync" {
		t.Errorf("Run: got %v, want the permanent error of the handler", err)
	}
}

// outcomeOf runs h in a goroutine of its own, as a child does, and waits for its error.
func outcomeOf(ctx context.Context, h jobs.Handler, job jobs.Job) error {
	result := make(chan error, 1)
	go Run(ctx, h, job, func(err error) { result <- err })
	return <-result
}
