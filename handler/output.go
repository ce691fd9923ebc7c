package handler

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/hashicorp/go-hclog"

	"queuekeeper/jobs"
)

const (
	lineMax = 2000 // bytes of a printed line that reach the log
	tailMax = 2048 // bytes of the output that reach the error
)

// output is what one command prints: a log entry for each line, and the last of it for the error. Its memory
// is bounded however much is printed.
type output struct {
	log   hclog.Logger
	job   jobs.Job
	tail  tail
	lines []*lines
}

func newOutput(log hclog.Logger, job jobs.Job) *output { return &output{log: log, job: job} }

// stream makes the writer of one stream. Streams may be written at the same time.
func (o *output) stream(name string) *lines {
	l := &lines{output: o, stream: name}
	o.lines = append(o.lines, l)
	return l
}

// flush logs what was printed without a final newline. Nothing may be written any more.
func (o *output) flush() {
	for _, l := range o.lines {
		l.flush()
	}
}

// lines is an io.Writer that logs each line, long ones cut.
type lines struct {
	output *output
	stream string
	line   []byte // begun and not ended: its first lineMax bytes
	cut    int    // how many more there were
}

func (l *lines) Write(p []byte) (int, error) {
	l.output.tail.add(p)
	for rest := p; len(rest) > 0; {
		part, after, ended := bytes.Cut(rest, []byte{'\n'})
		keep := min(len(part), lineMax-len(l.line))
		l.line = append(l.line, part[:keep]...)
		l.cut += len(part) - keep
		if ended {
			l.end()
		}
		rest = after
	}
	return len(p), nil
}

func (l *lines) flush() {
	if len(l.line) > 0 {
		l.end()
	}
}

func (l *lines) end() {
	text := cutLine(bytes.TrimSuffix(l.line, []byte{'\r'}), l.cut)
	job := l.output.job
	l.output.log.Info("output", "job", hclog.Quote(job.Name), "id", job.ID, "stream", l.stream, "line", hclog.Quote(text))
	l.line, l.cut = l.line[:0], 0
}

// cutLine is a line as it is logged, when cut bytes of it are gone already. Quoting makes what is not text up
// to four times longer: such a line is cut to a quarter, so that the log entry still fits the 4096 bytes that
// a pipe takes in one piece.
func cutLine(line []byte, cut int) string {
	const short = lineMax / 4
	if len(line) > short && len(strconv.Quote(string(line))) > lineMax*3/2 {
		cut += len(line) - short
		line = line[:short]
	}
	if cut == 0 {
		return string(line)
	}
	broken := brokenEnd(line)
	return fmt.Sprintf("%s %s", line[:len(line)-broken], cutMark(cut+broken))
}

// tail keeps the last tailMax bytes that were added, by any number of goroutines.
type tail struct {
	mu    sync.Mutex
	last  []byte
	total int
}

func (t *tail) add(p []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.total += len(p)
	p = p[max(0, len(p)-tailMax):]
	if over := len(t.last) + len(p) - tailMax; over > 0 {
		t.last = t.last[:copy(t.last, t.last[over:])]
	}
	t.last = append(t.last, p...)
}

func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	last := t.last
	if t.total > len(last) {
		last = last[brokenStart(last):]
		return cutMark(t.total-len(last)) + " " + strings.TrimSpace(string(last))
	}
	return strings.TrimSpace(string(last))
}
