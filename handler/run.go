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

// Run has h do job and returns its error. A panic of h, or its runtime.Goexit, is that job's failure and
// nothing more. Run returns when h does: that a handler ignores the end of ctx is the caller's to notice.
// A panic in a goroutine that h started ends the process, as always in Go.
func Run(ctx context.Context, h jobs.Handler, job jobs.Job) error {
	result := make(chan error, 1)
	go func() { // of its own, because Goexit ends the goroutine
		err := errGoexit
		defer func() {
			if r := recover(); r != nil {
				err = panicError(r, debug.Stack())
			}
			result <- err
		}()
		err = h(ctx, job)
	}()
	return <-result
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
