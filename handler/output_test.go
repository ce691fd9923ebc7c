package handler

import (
	"bytes"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"

	"queuekeeper/jobs"
)

// printed is the log of an output that is written these pieces, and the tail.
func printed(pieces ...string) (log, tail string) {
	var b bytes.Buffer
	out := newOutput(hclog.New(&hclog.LoggerOptions{Output: &b, DisableTime: true}), jobs.Job{ID: 42, Name: "Sync\n"})
	stream := out.stream("stdout")
	for _, piece := range pieces {
		_, _ = stream.Write([]byte(piece))
	}
	out.flush()
	return b.String(), out.tail.text()
}

func TestEachPrintedLineIsOneLogLine(t *testing.T) {
	const entry = `[INFO]  output: job="Sync\n" id=42 stream=stdout line=`
	for _, c := range []struct {
		about  string
		pieces []string
		want   []string
	}{
		{"nothing", nil, nil},
		{"in pieces", []string{"o", "ne\ntw", "o\n"}, []string{`"one"`, `"two"`}},
		{"last line without newline", []string{"one\ntwo"}, []string{`"one"`, `"two"`}},
		{"empty line", []string{"\n"}, []string{`""`}},
		{"carriage return", []string{"one\r\n"}, []string{`"one"`}},
		{"control characters", []string{"a\x00\x1b[0m\xff\"=\n"}, []string{`"a\x00\x1b[0m\xff\"="`}},
		{"long", []string{strings.Repeat("x", 69_000), "x\n", "y\n"},
			[]string{`"` + strings.Repeat("x", lineMax) + ` [... 67001 bytes cut]"`, `"y"`}},
		{"long, cut within a rune", []string{"x" + strings.Repeat("é", 1500)},
			[]string{`"x` + strings.Repeat("é", 999) + ` [... 1002 bytes cut]"`}},
		{"not text", []string{strings.Repeat("\x00", 1900)},
			[]string{`"` + strings.Repeat(`\x00`, lineMax/4) + ` [... 1400 bytes cut]"`}},
	} {
		want := ""
		for _, line := range c.want {
			want += entry + line + "\n"
		}
		if got, _ := printed(c.pieces...); got != want {
			t.Errorf("%s: got\n%s, want\n%s", c.about, got, want)
		}
	}
}

func TestTailIsTheLastOfTheOutput(t *testing.T) {
	long := strings.Repeat("é", tailMax) // twice what is kept
	for _, c := range []struct {
		about  string
		pieces []string
		want   string
	}{
		{"nothing", nil, ""},
		{"short", []string{"one\n", "two\n"}, "one\ntwo"},
		{"one long piece", []string{long}, "[... 2048 bytes cut] " + long[:tailMax]},
		{"one long piece cut within a rune", []string{long + "x"}, "[... 2050 bytes cut] " + long[:tailMax-2] + "x"},
		{"pieces", []string{long[:3000], long[3000:], "end\n"}, "[... 2052 bytes cut] " + long[:tailMax-4] + "end"},
	} {
		if _, got := printed(c.pieces...); got != c.want {
			t.Errorf("%s: got %q, want %q", c.about, got, c.want)
		}
	}
}
