package logs

import (
	"bufio"
	"io"
	"strings"
	"testing"
	"time"
)

func TestLogNobodyReadsCostsLinesNotTime(t *testing.T) {
	r, w := io.Pipe() // a write waits for its reader
	log, flush := New(w, false)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n := range 10 * kept {
			log.Info("a line", "n", n)
		}
		flush()
	}()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("the logger waits for a reader")
	}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		if strings.Contains(lines.Text(), "log lines dropped") {
			return
		}
	}
	t.Error("the dropped lines are not told")
}

func TestLinesAreWrittenWholeAndInOrder(t *testing.T) {
	var b strings.Builder
	log, flush := New(&b, false)
	log.Info("first")
	log.Info("long", "text", strings.Repeat("x", 10000))
	log.Info("last")
	flush()
	lines := strings.Split(b.String(), "\n")
	if len(lines) != 4 || !strings.HasSuffix(lines[0], "first") || !strings.HasSuffix(lines[2], "last") {
		t.Fatalf("got %d lines, want three in order:\n%s", len(lines)-1, b.String())
	}
	if n := len(lines[1]) + 1; n != maxLine || !strings.HasSuffix(lines[1]+"\n", cut) {
		t.Errorf("the long line has %d bytes, want %d and a mark that it was cut", n, maxLine)
	}
}
