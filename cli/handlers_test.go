package cli_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"queuekeeper/jobs"
)

// testHandlers are the Go handlers of the program under test, all in the queue "go".
var testHandlers = jobs.Handlers{"go": {
	"Mark":   mark,
	"Echo":   echo,
	"Object": jobs.Handle(func(context.Context, map[string]any) error { return nil }),
	"Once":   once,
	"Slow":   nap(300 * time.Millisecond),
	"Nap":    nap(20 * time.Millisecond),

	"KillSelf": poison(func() { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL); select {} }),
	"Exit0":    poison(func() { os.Exit(0) }),
	"Exit3":    poison(func() { os.Exit(3) }),
	"Exit75":   poison(func() { os.Exit(75) }),
	"Exit78":   poison(func() { os.Exit(78) }),
	"Fatal":    poison(func() { log.Fatal("told by log.Fatal") }),
	"Panic":    poison(func() { go panic("in a goroutine of the handler"); select {} }),
	"Hang":     poison(func() { select {} }), // ignores its context
}}

// mark notes a start of the job and when it was: one write, so that lines do not mix.
func mark(_ context.Context, job jobs.Job) error {
	f, err := os.OpenFile(filepath.Join(os.Getenv(siteEnv), "marks"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = fmt.Fprintf(f, "%d %s %d\n", job.ID, job.Name, time.Now().UnixNano())
	return err
}

// poison notes the start and then does what ends the process, or never ends.
func poison(do func()) jobs.Handler {
	return func(ctx context.Context, job jobs.Job) error {
		if err := mark(ctx, job); err != nil {
			return err
		}
		do()
		return nil
	}
}

// echo writes the args, as they came, where the test finds them.
func echo(_ context.Context, job jobs.Job) error {
	return os.WriteFile(filepath.Join(os.Getenv(siteEnv), fmt.Sprintf("go-%d", job.ID)), job.Args, 0o644)
}

// once fails the first time.
func once(_ context.Context, job jobs.Job) error {
	if job.Attempt == 1 {
		return errors.New("the first attempt fails")
	}
	return nil
}

// hangAtStart keeps the child of a queue, once, from ever coming up: a file of the test asks for it.
func hangAtStart(queue string) {
	if os.Remove(filepath.Join(os.Getenv(siteEnv), "hang-"+queue)) == nil {
		var pipe [2]int
		_ = syscall.Pipe(pipe[:])
		_, _ = syscall.Read(pipe[0], make([]byte, 1)) // nobody ever writes
	}
}

// nap is still in hand when its neighbour ends the process.
func nap(d time.Duration) jobs.Handler {
	return func(ctx context.Context, _ jobs.Job) error {
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// marks are the starts of the jobs called name.
func (s *site) marks(name string) (starts []time.Time) {
	s.t.Helper()
	for line := range strings.Lines(s.read("marks")) {
		var id, ns int64
		var of string
		if _, err := fmt.Sscanf(line, "%d %s %d\n", &id, &of, &ns); err != nil {
			s.t.Fatalf("read mark %q: %v", line, err)
		}
		if of == name {
			starts = append(starts, time.Unix(0, ns))
		}
	}
	return starts
}
