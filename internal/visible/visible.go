// Package visible makes text of users safe to show: what a terminal obeys, or Postgres refuses, is written as the
// escapes of a Go string.
package visible

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Text is s with every rune that hidden names, and every byte that is not UTF-8, written as its escape.
func Text(s string, hidden func(rune) bool) string {
	if strings.IndexFunc(s, hidden) < 0 && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		if hidden(r) || r == utf8.RuneError && n == 1 {
			quoted := strconv.Quote(s[:n])
			b.WriteString(quoted[1 : len(quoted)-1])
		} else {
			b.WriteString(s[:n])
		}
		s = s[n:]
	}
	return b.String()
}
