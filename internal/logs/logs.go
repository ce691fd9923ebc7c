// Package logs is where the log of a supervisor and its children goes. Nothing here ever waits for a reader: a
// terminal that is held, or a pipe that nobody empties, must cost lines, not leases.
package logs

import (
	"io"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
)

// New returns a logger of whole lines to w, as JSON or as text, and a function that waits for the last lines, for
// a moment at most.
func New(w io.Writer, json bool) (log hclog.Logger, flush func()) {
	q := &queue{lines: make(chan []byte, kept), flushes: make(chan chan struct{})}
	log = hclog.New(options(q, json))
	go q.run(w, hclog.New(options(w, json)))
	return log, q.flush
}

func options(w io.Writer, json bool) *hclog.LoggerOptions {
	return &hclog.LoggerOptions{Level: hclog.Info, JSONFormat: json, Output: w, TimeFormat: "2006-01-02T15:04:05.000Z07:00"}
}

const (
	kept     = 1024                   // lines that may wait for the reader
	maxLine  = 4096                   // bytes: what a pipe takes whole, beside those of other writers
	patience = 200 * time.Millisecond // of flush
)

// queue is a writer that drops lines rather than wait.
type queue struct {
	lines   chan []byte
	dropped atomic.Int64
	flushes chan chan struct{}
}

// Write takes one line. It always succeeds: what to do about a log that fails could only be logged.
func (q *queue) Write(line []byte) (int, error) {
	n := len(line)
	if n > maxLine {
		line = append(line[:maxLine-len(cut):maxLine-len(cut)], cut...)
	}
	select {
	case q.lines <- append([]byte(nil), line...):
	default:
		q.dropped.Add(1)
	}
	return n, nil
}

const cut = " [cut]\n"

// run writes for the rest of the process: the writer may hang for as long. own is the log of what was dropped.
func (q *queue) run(w io.Writer, own hclog.Logger) {
	for {
		select {
		case line := <-q.lines:
			q.write(w, line, own)
		case done := <-q.flushes:
			for len(q.lines) > 0 {
				q.write(w, <-q.lines, own)
			}
			close(done)
		}
	}
}

func (q *queue) write(w io.Writer, line []byte, own hclog.Logger) {
	_, _ = w.Write(line)
	if n := q.dropped.Swap(0); n > 0 {
		own.Warn("log lines dropped: nobody read them", "lines", n)
	}
}

func (q *queue) flush() {
	late := time.After(patience)
	done := make(chan struct{})
	select {
	case q.flushes <- done:
	case <-late:
		return
	}
	select {
	case <-done:
	case <-late:
	}
}
