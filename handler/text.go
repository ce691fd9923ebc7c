package handler

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// headMax is how much of the beginning of an error's text is kept when it is too long, beside the last
// tailMax bytes: room for what an error says first, with all that is kept of a command's output after it.
const headMax = 512

// Describe is the text of err as it can be stored and shown: valid UTF-8, control characters but newline and
// tab made visible as \x00, invalid bytes as \xff, and of a long text its first 512 and last 2048 bytes. It is
// never empty unless err is nil, and survives an Error method that panics.
func Describe(err error) string {
	if err == nil {
		return ""
	}
	text := errorText(err)
	if strings.TrimSpace(text) == "" {
		return fmt.Sprintf("error without a text, of type %T", err)
	}
	if len(text) <= headMax+tailMax {
		return visible(text)
	}
	head, last := text[:headMax], text[len(text)-tailMax:]
	head = head[:len(head)-brokenEnd(head)]
	last = last[brokenStart(last):]
	return visible(head) + " " + cutMark(len(text)-len(head)-len(last)) + " " + visible(last)
}

// errorText is err.Error(), also when that panics, as it does for a nil pointer in an error.
func errorText(err error) (text string) {
	defer func() {
		if r := recover(); r != nil {
			text = fmt.Sprintf("error of type %T whose Error method panics: %v", err, r)
		}
	}()
	return err.Error()
}

// visible writes what Postgres refuses or a terminal obeys as the escapes of a Go string.
func visible(text string) string {
	clean := func(r rune) bool { return r == '\n' || r == '\t' || (!unicode.IsControl(r) && r != utf8.RuneError) }
	if strings.IndexFunc(text, func(r rune) bool { return !clean(r) }) < 0 {
		return text
	}
	var b strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		if clean(r) || size > 1 && r == utf8.RuneError { // a replacement character the text itself holds
			b.WriteString(text[:size])
		} else {
			quoted := strconv.Quote(text[:size])
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		text = text[size:]
	}
	return b.String()
}

func cutMark(n int) string { return fmt.Sprintf("[... %d bytes cut]", n) }

// brokenStart is how many bytes a text cut out of a longer one begins with that are the end of a rune.
func brokenStart[T string | []byte](text T) int {
	n := 0
	for n < min(len(text), utf8.UTFMax-1) && !utf8.RuneStart(text[n]) {
		n++
	}
	return n
}

// brokenEnd is how many bytes it ends with that are the beginning of a rune.
func brokenEnd[T string | []byte](text T) int {
	for n := 1; n <= min(len(text), utf8.UTFMax-1); n++ {
		if end := text[len(text)-n:]; utf8.RuneStart(end[0]) {
			if utf8.FullRune([]byte(end)) {
				return 0
			}
			return n
		}
	}
	return 0
}
