package child

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"queuekeeper/internal/eventually"
	"queuekeeper/internal/wire"
	"queuekeeper/jobs"
)

// dirEnv has the folder of a child that runs in a process of its own.
const dirEnv = "QUEUEKEEPER_TEST_CHILD"

// TestMain makes this test binary a child where it is started as one.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "child" {
		os.Exit(Main(jobs.Handlers{queue: {"Heeds": waits(true), "Ignores": waits(false)}}))
	}
	os.Exit(m.Run())
}

// waits is a handler that notes in its folder that it began and that it was told to end. It ends when the test lets
// it, and if it heeds its context when it is told to.
func waits(heeds bool) jobs.Handler {
	path := func(name string) string { return filepath.Join(os.Getenv(dirEnv), name) }
	return func(ctx context.Context, _ jobs.Job) error {
		if err := os.WriteFile(path("began"), nil, 0o600); err != nil {
			return err
		}
		for !exists(path("let")) {
			select {
			case <-time.After(5 * time.Millisecond):
				continue
			case <-ctx.Done():
			}
			if err := os.WriteFile(path("told"), nil, 0o600); err != nil || heeds {
				return errors.Join(err, ctx.Err())
			}
			ctx = context.WithoutCancel(ctx)
		}
		return nil
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// process is a child in a process of its own, as a supervisor starts it.
type process struct {
	*rig
	dir    string
	cmd    *exec.Cmd
	orders *os.File         // the control pipe
	bye    chan wire.Status // its last words; closed once it is gone
}

// newProcess prepares one that has time for everything.
func newProcess(t *testing.T) *process {
	t.Helper()
	c := &process{rig: newRig(t), dir: t.TempDir(), bye: make(chan wire.Status, 1)}
	c.set.Worker, c.set.Lease, c.set.ShutdownTimeout = c.worker, 30*time.Second, time.Minute
	c.set.Worker.KillAfter = time.Minute
	c.said = make(chan wire.Status, 100)
	return c
}

func (c *process) start() {
	c.t.Helper()
	control, orders := c.pipe()
	says, status := c.pipe()
	_, crash := c.pipe()
	c.orders = orders
	c.cmd = &exec.Cmd{
		Path: os.Args[0], Args: []string{os.Args[0], "child", queue},
		// The race detector keeps a process for a second after its exit: not what is tested here.
		Env:    append(os.Environ(), dirEnv+"="+c.dir, "GORACE=atexit_sleep_ms=0"),
		Stderr: c.log, ExtraFiles: []*os.File{control, status, crash},
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	err := c.cmd.Start()
	for _, theirs := range []*os.File{control, status, crash} {
		theirs.Close()
	}
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(c.clean)
	go c.listen(says)
	c.write(c.set)
}

func (c *process) pipe() (in, out *os.File) {
	c.t.Helper()
	in, out, err := os.Pipe()
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		in.Close()
		out.Close()
	})
	return in, out
}

// listen passes on what the child says, but for its signs of life.
func (c *process) listen(says io.Reader) {
	defer close(c.bye)
	lines := json.NewDecoder(says)
	for {
		var s wire.Status
		if lines.Decode(&s) != nil {
			return
		}
		switch s.Is {
		case wire.Beat:
		case wire.Bye:
			c.bye <- s
		default:
			c.said <- s
		}
	}
}

func (c *process) write(line any) {
	c.t.Helper()
	if err := json.NewEncoder(c.orders).Encode(line); err != nil {
		c.t.Fatal(err)
	}
}

func (c *process) signal(sig syscall.Signal) {
	c.t.Helper()
	if err := c.cmd.Process.Signal(sig); err != nil {
		c.t.Fatal(err)
	}
}

// notes waits for a word of the handler.
func (c *process) notes(word string) {
	c.t.Helper()
	eventually.OK(c.t, 20*time.Second, func() error {
		if !exists(filepath.Join(c.dir, word)) {
			return fmt.Errorf("note of the handler: got none, want %q; log:\n%s", word, c.log)
		}
		return nil
	})
}

// hasNot fails if the handler has noted a word.
func (c *process) hasNot(word string) {
	c.t.Helper()
	if exists(filepath.Join(c.dir, word)) {
		c.t.Errorf("note of the handler: got %q, want none", word)
	}
}

// let lets all handlers end.
func (c *process) let() {
	c.t.Helper()
	if err := os.WriteFile(filepath.Join(c.dir, "let"), nil, 0o600); err != nil {
		c.t.Fatal(err)
	}
}

// exits waits until the child has left in order: with status 0, and with the word that no lease of its is left.
func (c *process) exits() {
	c.t.Helper()
	late := time.AfterFunc(20*time.Second, func() { _ = c.cmd.Process.Kill() })
	defer late.Stop()
	_ = c.cmd.Wait() // its error is the status
	if got := c.cmd.ProcessState; got.ExitCode() != wire.ExitOK {
		c.t.Fatalf("end of the child: got %v, want exit status 0", got)
	}
	if bye, said := <-c.bye; !said || !bye.Free {
		c.t.Errorf("last words of the child: got %+v, want bye, free", bye)
	}
}

// clean ends what a failed test has left.
func (c *process) clean() {
	if c.cmd.ProcessState == nil {
		_ = c.cmd.Process.Kill()
		_ = c.cmd.Wait()
	}
	if c.t.Failed() {
		c.t.Logf("log:\n%s", c.log)
	}
}
