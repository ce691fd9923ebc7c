package jobs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"unicode/utf8"
)

// The limits of args.
const (
	MaxArgsDepth = 1000    // arrays and objects inside each other
	MaxArgsSize  = 1 << 20 // bytes, as Postgres stores and prints them
)

// CheckArgs reports why text cannot be the args of a job, or nil. Whatever it accepts, Postgres accepts as
// jsonb. It refuses text that is not valid JSON or not valid UTF-8 (a byte order mark in front included),
// NUL and lone surrogates in any string, numbers beyond what Postgres can hold, more than MaxArgsDepth levels,
// and more than MaxArgsSize bytes. The size is that of the stored text, so 1e1000 counts 1001 bytes. Positions
// count from 1. Of an object's equal keys Postgres keeps the last.
func CheckArgs(text []byte) error {
	if err := checkUTF8(text); err != nil {
		return err
	}
	if bytes.HasPrefix(text, []byte("\ufeff")) {
		return errors.New("starts with a byte order mark; JSON has none")
	}
	if err := CheckArgsDepth(text); err != nil { // before the JSON parser, which has a limit of its own
		return err
	}
	if len(text) == 0 {
		return errors.New("not JSON: empty")
	}
	var whole json.RawMessage
	if err := json.Unmarshal(text, &whole); err != nil {
		return notJSON(err)
	}
	w := argsWalk{text: text}
	if err := w.run(); err != nil {
		return err
	}
	if w.size > MaxArgsSize {
		return fmt.Errorf("%d bytes as stored; the limit is %d", w.size, MaxArgsSize)
	}
	return nil
}

// CheckArgsDepth reports whether JSON text nests deeper than MaxArgsDepth. A raw INSERT can: JSON libraries fail,
// or worse, from 10,000 levels on.
func CheckArgsDepth(text []byte) error {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '{', '[':
			if depth++; depth > MaxArgsDepth {
				return fmt.Errorf("nested deeper than %d levels at byte %d", MaxArgsDepth, i+1)
			}
		case '}', ']':
			depth--
		case '"':
			i = endOfString(text, i)
		}
	}
	return nil
}

// endOfString returns the index of the quote that closes the string opened at i, or of the last byte.
func endOfString(text []byte, i int) int {
	for i++; i < len(text) && text[i] != '"'; i++ {
		if text[i] == '\\' {
			i++
		}
	}
	return min(i, len(text)-1)
}

// replaced finds what encoding/json writes for bytes that are not UTF-8. The character itself it writes as it is.
var replaced = regexp.MustCompile(`(^|[^\\])(\\\\)*\\ufffd`)

// argsText is the JSON text of a New's Args, checked.
func argsText(args any) (string, error) {
	var text []byte
	switch args := args.(type) {
	case nil:
		text = []byte("{}")
	case string:
		text = []byte(args)
	case []byte:
		text = args
	case json.RawMessage:
		text = args
	default:
		var err error
		if text, err = json.Marshal(args); err != nil {
			return "", err
		}
		if replaced.Match(text) {
			return "", errors.New("a string in it is not valid UTF-8")
		}
	}
	return string(text), CheckArgs(text)
}

func checkUTF8(text []byte) error {
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && n == 1 {
			return fmt.Errorf("not valid UTF-8 at byte %d", i+1)
		}
		i += n
	}
	return nil
}

func notJSON(err error) error {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Errorf("not JSON at byte %d: %w", syntax.Offset, err)
	}
	return fmt.Errorf("not JSON: %w", err)
}
