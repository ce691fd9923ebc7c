package handler

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"queuekeeper/jobs"
)

// stackLines is how much of the stack a panic's error shows: two lines a call, the place of the panic first.
const stackLines = 10

var errGoexit = errors.New("handler ended its goroutine by runtime.Goexit")

// Run has h do job and calls done with its error, once. A panic of h is that job's failure and nothing more, and so is
// its runtime.Goexit, which ends the calling goroutine: give Run one of its own. It lasts as long as h does: that a
// handler ignores the end of ctx is the caller's to notice. A panic in a goroutine that h started ends the process, as
// always in Go.
func Run(ctx context.Context, h jobs.Handler, job jobs.Job, done func(error)) {
	err := errGoexit
	defer func() {
		if r := recover(); r != nil {
			err = panicError(r, debug.Stack())
		}
		done(err)
	}()
	err = h(ctx, job)
}

// panicError is the error of a handler that panicked with value: always a plain failure, even if the value is
// an error that would say otherwise.
func panicError(value any, stack []byte) error {
	if _, after, found := bytes.Cut(stack, []byte("\npanic(")); found {
		// The calls before it are Run's own; its second line is runtime/panic.go.
		lines := bytes.SplitAfterN(after, []byte{'\n'}, 3+stackLines)
		if len(lines) > 2 {
			stack = bytes.Join(lines[2:min(len(lines), 2+stackLines)], nil)
		}
	}
	return fmt.Errorf("panic: %v\n%s", value, bytes.TrimSpace(stack))
}
