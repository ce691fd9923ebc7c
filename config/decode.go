package config

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"github.com/BurntSushi/toml"
)

// decode makes a tree of text with the TOML library. Not into a struct: there the library takes Rate for
// rate and 30 for 30 ns. It stops at the first fault of the syntax.
func decode(text string) (map[string]any, *Fault) {
	var tree map[string]any
	_, err := toml.Decode(text, &tree)
	if err == nil {
		return tree, nil
	}
	var syntax toml.ParseError
	if !errors.As(err, &syntax) {
		return nil, &Fault{Line: 1, Text: "cannot be read as TOML"}
	}
	// The library's own line is one too far where it stumbled over the end of a line.
	last := syntax.Position.Start + max(syntax.Position.Len, 1) - 1
	line := lineAt(text, min(max(last, 0), len(text)-1))
	quote := strings.Split(text, "\n")[line-1]
	if strings.Contains(text, `"""`) || strings.Contains(text, "'''") {
		quote = "" // it may be the inside of a string of several lines
	}
	return nil, &Fault{Line: line, Text: syntaxText(syntax, quote)}
}

var (
	secretWord  = regexp.MustCompile(`(?i)passw|secret|token|credential|auth|key|private|url|dsn|://|@`)
	placeholder = regexp.MustCompile(`\$\{[^}]*\}?`)
	// The library puts the whole string so far into what it says of a wrong escape.
	stringSoFar = regexp.MustCompile(`(?s)(after '\\.'), but got .*`)
)

// syntaxText says what the library found and quotes the line, but nothing that can be a secret: no content
// of a string, and of a line that looks like one with a password only the key.
func syntaxText(err toml.ParseError, line string) string {
	if secretWord.MatchString(line) || secretWord.MatchString(err.LastKey) {
		before, _, found := strings.Cut(line, "=")
		if !found || strings.ContainsAny(before, `"'`) || strings.Contains(before, "://") {
			before = ""
		}
		return printable(fmt.Sprintf("is not TOML: in `%s…` (the rest may be a secret)", short(before)))
	}
	if i := strings.IndexAny(line, `"'`); i >= 0 {
		line = line[:i+1] + "…"
	}
	line = placeholder.ReplaceAllString(line, "$${…}")
	message := stringSoFar.ReplaceAllString(err.Message, "$1")
	if line == "" {
		return printable("is not TOML: " + message)
	}
	return printable(fmt.Sprintf("is not TOML: in `%s`: %s", short(strings.TrimSpace(line)), message))
}

// printable keeps a fault on its one line: the library repeats an escaped newline as it is.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}
