package handler

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"queuekeeper/internal/visible"
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
		return shown(text)
	}
	head, last := text[:headMax], text[len(text)-tailMax:]
	head = head[:len(head)-brokenEnd(head)]
	last = last[brokenStart(last):]
	return shown(head) + " " + cutMark(len(text)-len(head)-len(last)) + " " + shown(last)
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

// shown writes what Postgres refuses or a terminal obeys as escapes. Lines stay lines.
func shown(text string) string {
	return visible.Text(text, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' })
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
