package cli_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"queuekeeper/jobs"
)

// spinning is how long the handler Spin takes.
const spinning = 6500 * time.Millisecond

// More handlers of the program under test: of the queue "go", and of two whose jobs have the same names.
func init() {
	for name, do := range map[string]jobs.Handler{
		"Breath":      breath,
		"Spin":        poison(spin),
		"KillWhenLet": poison(killWhenLet),
		"CloseOutput": poison(func() { _, _ = syscall.Close(1), syscall.Close(2) }),
	} {
		testHandlers["go"][name] = do
	}
	testHandlers["alpha"] = map[string]jobs.Handler{"Same": same("alpha", 2), "Quick": quick}
	testHandlers["beta"] = map[string]jobs.Handler{"Same": same("beta", 0), "Quick": quick}
	if len(os.Args) > 2 && os.Args[1] == "child" {
		exitAtStart(os.Args[2])
	}
}

// breath notes its start and its end.
func breath(ctx context.Context, job jobs.Job) error {
	if err := mark(ctx, job); err != nil {
		return err
	}
	time.Sleep(20 * time.Millisecond)
	job.Name = "Breathed"
	return mark(ctx, job)
}

// quick takes a fifth of a second, whatever its context says.
func quick(ctx context.Context, job jobs.Job) error {
	err := mark(ctx, job)
	time.Sleep(200 * time.Millisecond)
	return err
}

// spin calls no function, so nothing but a signal takes the processor from it.
func spin() {
	var enough atomic.Bool
	time.AfterFunc(spinning, func() { enough.Store(true) })
	for !enough.Load() {
	}
}

// killWhenLet kills its process when the test has made a file.
func killWhenLet() {
	for {
		if _, err := os.Stat(filepath.Join(os.Getenv(siteEnv), "let")); err == nil {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// same notes which queue's handler it is and what it was given. It fails the first attempts.
func same(queue string, failing int) jobs.Handler {
	return func(_ context.Context, job jobs.Job) error {
		f, err := os.OpenFile(filepath.Join(os.Getenv(siteEnv), "same"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
		if err != nil {
			return err
		}
		defer f.Close()
		if _, err := fmt.Fprintf(f, "%s %s %d\n", queue, job.Queue, os.Getpid()); err != nil {
			return err
		}
		if job.Attempt <= failing {
			return errors.New("one of the attempts that fail")
		}
		return nil
	}
}

// exitAtStart prints a line and ends the child of a queue before it does anything, for as long as there is a file
// with the status.
func exitAtStart(queue string) {
	text, err := os.ReadFile(filepath.Join(os.Getenv(siteEnv), "exit-"+queue))
	if err != nil {
		return
	}
	status, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		panic(err)
	}
	fmt.Printf("short life: queue=%s pid=%d\n", queue, os.Getpid())
	os.Exit(status)
}
