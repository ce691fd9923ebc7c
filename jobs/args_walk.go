package jobs

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// argsWalk goes once through valid JSON, knows where it is, and counts what Postgres will print.
type argsWalk struct {
	text []byte
	size int
	path []level
}

// level is one array or object the walk is inside of.
type level struct {
	array bool
	index int
	key   string // as written, without quotes
	value bool   // of an object: the next string is a value, not a key
}

func (w *argsWalk) run() error {
	for i := 0; i < len(w.text); i++ {
		switch c := w.text[i]; c {
		case ' ', '\t', '\n', '\r':
		case '{', '[':
			w.size++
			w.path = append(w.path, level{array: c == '['})
		case '}', ']':
			w.size++
			w.path = w.path[:len(w.path)-1]
		case ':':
			w.size += len(": ")
			w.top().value = true
		case ',':
			w.size += len(", ")
			w.top().value = false
			w.top().index++
		case '"':
			end := endOfString(w.text, i)
			if err := w.str(w.text[i+1 : end]); err != nil {
				return err
			}
			i = end
		default:
			end := endOfWord(w.text, i)
			if err := w.word(string(w.text[i:end])); err != nil {
				return err
			}
			i = end - 1
		}
	}
	return nil
}

func (w *argsWalk) top() *level { return &w.path[len(w.path)-1] }

// str takes the inside of a string, key or value.
func (w *argsWalk) str(s []byte) error {
	if len(w.path) > 0 && !w.top().array && !w.top().value {
		w.top().key = string(s)
	}
	w.size += len(`""`)
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			w.size++
			continue
		}
		i++
		if s[i] != 'u' {
			if w.size++; s[i] != '/' { // a slash is stored without its backslash
				w.size++
			}
			continue
		}
		r, n := escaped(s[i-1:])
		switch {
		case r == 0:
			return fmt.Errorf(`NUL (\u0000) at %s: Postgres cannot store it`, w.where())
		case utf16.IsSurrogate(r):
			return fmt.Errorf(`lone surrogate (%s) at %s: half a character`, s[i-1:i+5], w.where())
		}
		w.size += printed(r)
		i += n - 2
	}
	return nil
}

// escaped reads the \u and four digits at the start of s, or the two of a surrogate pair: the character and how many bytes it
// took. A lone surrogate comes back as itself.
func escaped(s []byte) (rune, int) {
	r := hex(s)
	if utf16.IsSurrogate(r) && len(s) >= 12 && s[6] == '\\' && s[7] == 'u' {
		if pair := utf16.DecodeRune(r, hex(s[6:])); pair != utf8.RuneError {
			return pair, 12
		}
	}
	return r, 6
}

func hex(s []byte) rune {
	n, _ := strconv.ParseUint(string(s[2:6]), 16, 32) // the JSON was found valid
	return rune(n)
}

// printed is how many bytes Postgres prints for a character that came as an escape.
func printed(r rune) int {
	switch {
	case r == '"' || r == '\\' || strings.ContainsRune("\b\f\n\r\t", r):
		return 2
	case r < ' ':
		return 6
	}
	return utf8.RuneLen(r)
}

func endOfWord(text []byte, i int) int {
	for i < len(text) && !strings.ContainsRune(" \t\n\r,:]}", rune(text[i])) {
		i++
	}
	return i
}

// The most digits a numeric has, in front of the point and behind it.
const (
	maxWhole    = 131072
	maxFraction = 16383
)

// word takes true, false, null or a number. Postgres stores a number with all its digits and without an exponent.
func (w *argsWalk) word(s string) error {
	if s[0] > '9' {
		w.size += len(s)
		return nil
	}
	digits := strings.TrimPrefix(s, "-")
	mantissa, exponent, _ := strings.Cut(strings.ToLower(digits), "e")
	e := 0
	if exponent != "" {
		var err error
		if e, err = strconv.Atoi(exponent); err != nil || e > 1e6 || e < -1e6 {
			return fmt.Errorf("number at %s: the exponent %s is beyond what Postgres can hold", w.where(), exponent)
		}
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	before, after := max(len(whole)+e, 1), max(len(fraction)-e, 0)
	if before > maxWhole || after > maxFraction {
		return fmt.Errorf("number at %s: more digits than Postgres can hold (%d before the point, %d after)",
			w.where(), maxWhole, maxFraction)
	}
	w.size += len(s) - len(digits) + before + after
	if after > 0 {
		w.size += len(".")
	}
	return nil
}

// where is the path to the current place, as jq writes it: .a[2].b
func (w *argsWalk) where() string {
	const most = 20 // levels shown; the rest is cut
	var b strings.Builder
	for i, s := range w.path {
		switch {
		case i == most:
			return b.String() + "…"
		case s.array:
			fmt.Fprintf(&b, "[%d]", s.index)
		case plain(s.key):
			b.WriteString("." + s.key)
		default:
			b.WriteString(`."` + cut(s.key) + `"`)
		}
	}
	if b.Len() == 0 {
		return "."
	}
	return b.String()
}

func plain(key string) bool {
	for _, c := range key {
		if c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return false
		}
	}
	return key != "" && len(key) <= 64
}

// cut shortens a text for a message.
func cut(s string) string {
	if r := []rune(s); len(r) > 64 {
		return string(r[:64]) + "…"
	}
	return s
}
