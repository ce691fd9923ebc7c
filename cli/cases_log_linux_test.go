package cli_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"queuekeeper/internal/eventually"
)

// A pipe or a file: a line is there when it was written, and nothing of what children say later is lost when the
// supervisor is killed.
func TestLinesComeAtOnceAndOutliveTheSupervisor(t *testing.T) {
	t.Parallel()
	const lines = 8
	for name, open := range map[string]func(t *testing.T) (out *os.File, in io.Reader){"pipe": pipeOut, "file": fileOut} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, `
[[worker]]
queue = "github"
command = ["sh", "-c", "for i in 1 2 3 4 5 6 7 8; do echo at $(date +%s%N) end; sleep 0.25; done"]
`)
			out, in := open(t)
			cmd := s.command([]string{"run"}, dividedEnv+"=10")
			cmd.Stdout, cmd.Stderr = out, out
			s.insert("github", "Print")
			p := s.start(cmd)
			out.Close()
			r := &reader{t: t, in: in}
			for n := range lines {
				written := r.stamp()
				if late := time.Since(written); late > 200*time.Millisecond+scheduling {
					t.Errorf("line %d: got it %v after it was written, want at once", n, late)
				}
				if n == lines/2 {
					kill(t, p.cmd.Process.Pid)
				}
			}
			p.exits(-1)
			for _, want := range []string{`job ended: queue=github job="Print" id=1 attempt=1 status=done`, `queue released: queue=github`} {
				r.line(want)
			}
			s.ends("")
			s.cleanEnd("1 done")
		})
	}
}

func pipeOut(t *testing.T) (out *os.File, in io.Reader) {
	near, far := pipe(t)
	if err := near.SetReadDeadline(time.Now().Add(2 * patience)); err != nil {
		t.Fatal(err)
	}
	return far, near
}

func fileOut(t *testing.T) (out *os.File, in io.Reader) {
	out, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	in, err = os.Open(out.Name())
	if err != nil {
		t.Fatal(err)
	}
	return out, in
}

// reader reads a log as it grows.
type reader struct {
	t    *testing.T
	in   io.Reader
	rest string
}

// line waits for a line with a text in it. Each line must be whole.
func (r *reader) line(with string) (found string) {
	r.t.Helper()
	eventually.OK(r.t, patience, func() error {
		for {
			line, rest, whole := strings.Cut(r.rest, "\n")
			if !whole {
				break
			}
			if r.rest = rest; strings.Contains(line, with) {
				found = line
				return nil
			}
		}
		buffer := make([]byte, 4096)
		n, err := r.in.Read(buffer)
		if r.rest += string(buffer[:n]); err != nil && err != io.EOF {
			r.t.Fatal(err)
		}
		return fmt.Errorf("log: got %q last, want a line with %q", r.rest, with)
	})
	return found
}

// stamp waits for the next line that says when it was written.
func (r *reader) stamp() time.Time {
	r.t.Helper()
	line := r.line(`line="at `)
	var ns int64
	if _, err := fmt.Sscanf(line[strings.Index(line, `"at `):], `"at %d end"`, &ns); err != nil {
		r.t.Fatalf("read line %q: %v", line, err)
	}
	return time.Unix(0, ns)
}
