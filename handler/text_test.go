package handler

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

type panicking struct{}

func (panicking) Error() string { panic("no text") }

type pointer struct{ text string }

func (e *pointer) Error() string { return e.text }

// PO05.
func TestDescribeMakesEveryErrorStorable(t *testing.T) {
	var nothing *pointer
	for _, c := range []struct {
		about string
		err   error
		want  string
	}{
		{"plain", errors.New("boom: é"), "boom: é"},
		{"lines", errors.New("one\n\ttwo"), "one\n\ttwo"},
		{"NUL", errors.New("boom\x00x"), `boom\x00x`},
		{"invalid", errors.New("boom\xff"), `boom\xff`},
		{"terminal escape", errors.New("\x1b[31mred\r"), `\x1b[31mred\r`},
		{"C1 control", errors.New("a\u009bb"), `a\u009bb`},
		{"replacement character", errors.New("a\ufffd\x00"), "a\ufffd" + `\x00`},
		{"empty", errors.New(""), "error without a text, of type *errors.errorString"},
		{"blank", errors.New(" \n"), "error without a text, of type *errors.errorString"},
		{"panics", panicking{}, "error of type handler.panicking whose Error method panics: no text"},
		{"600 times é", errors.New(strings.Repeat("é", 600)), strings.Repeat("é", 600)},
		{"none", nil, ""},
	} {
		if got := Describe(c.err); got != c.want {
			t.Errorf("%s: got %q, want %q", c.about, got, c.want)
		}
	}
	if got := Describe(nothing); !strings.HasPrefix(got, "error of type *handler.pointer whose Error method panics") {
		t.Errorf("nil pointer: got %q, want it survived", got)
	}
}

func TestDescribeCutsBetweenRunes(t *testing.T) {
	for _, r := range []string{"x", "é", "€", "😀"} {
		for shift := range 4 {
			text := strings.Repeat("x", shift) + strings.Repeat(r, 2000)
			got := Describe(errors.New(text))
			if !utf8.ValidString(got) || strings.Contains(got, `\x`) {
				t.Errorf("2000 times %s after %d: got %q, want whole runes", r, shift, got)
			}
			if len(text) > headMax+tailMax && !strings.Contains(got, " bytes cut]") {
				t.Errorf("2000 times %s after %d: got no mark of the cut", r, shift)
			}
		}
	}
}

func TestDescribeKeepsBothEndsOfALongText(t *testing.T) {
	const size = 50_000_000
	got := Describe(errors.New("begin" + strings.Repeat(".", size-8) + "end"))
	if len(got) > headMax+tailMax+50 {
		t.Errorf("length: got %d, want about %d", len(got), headMax+tailMax)
	}
	if !strings.HasPrefix(got, "begin.") || !strings.HasSuffix(got, ".end") || !strings.Contains(got, "[... 49997440 bytes cut]") {
		t.Errorf("got %q, want both ends and how much is missing", got)
	}
}

func FuzzDescribe(f *testing.F) {
	f.Add("boom\x00\xff\u0085", 1)
	f.Add("é", 3000)
	f.Fuzz(func(t *testing.T, text string, times int) {
		if times < 1 || times > 5000 || len(text) > 1000 {
			return
		}
		got := Describe(errors.New(strings.Repeat(text, times)))
		if got == "" || !utf8.ValidString(got) || strings.ContainsRune(got, 0) || len(got) > 4*(headMax+tailMax)+50 {
			t.Errorf("Describe of %d times %q: got %q, want short valid UTF-8 without NUL", times, text, got)
		}
	})
}
