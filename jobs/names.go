package jobs

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// ErrInvalid means that what was asked for breaks a rule of the table jobs. It was refused before anything was sent.
var ErrInvalid = errors.New("invalid job")

// invalid makes an error an ErrInvalid without a word more.
type invalid struct{ error }

func (e invalid) Is(target error) bool { return target == ErrInvalid }
func (e invalid) Unwrap() error        { return e.error }

// DefaultLane is the lane of a job that names none.
const DefaultLane = "default"

const (
	maxText        = 255 // bytes of a name, a lane or a unique key
	maxMaxAttempts = 1_000_000
)

// The rules below are those of the table's domains, said before a round trip and in the words of the caller.

var queueName = regexp.MustCompile(`^[a-z0-9][a-z0-9_.-]{0,57}$`)

// CheckQueue reports why name cannot be the name of a queue, or nil: it must be 1 to 58 lower-case letters, digits,
// dots, dashes and underscores, the first a letter or a digit.
func CheckQueue(name string) error {
	if !queueName.MatchString(name) {
		return fmt.Errorf("queue %q: must be 1 to 58 lower-case letters, digits, dots, dashes and underscores, "+
			"the first a letter or a digit", cut(name))
	}
	return nil
}

func checkText(what, text string) error {
	if err := checkUTF8([]byte(text)); err != nil {
		return fmt.Errorf("%s %q: %w", what, cut(text), err)
	}
	switch {
	case text == "":
		return fmt.Errorf("%s: must not be empty", what)
	case len(text) > maxText:
		return fmt.Errorf("%s %q: has %d bytes; the limit is %d", what, cut(text), len(text), maxText)
	case strings.ContainsRune(text, 0):
		return fmt.Errorf("%s %q: contains NUL, which Postgres cannot store", what, cut(text))
	}
	return nil
}
