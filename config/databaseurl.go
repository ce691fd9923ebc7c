package config

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5"
)

// databaseURL is a text that pgx can connect with. pgx masks passwords in its errors as well as it can, but
// of a malformed URL it cannot know where the password ends: none of its words are passed on.
type databaseURL struct{}

var (
	errEncode = errors.New("percent-encode the password: write % as %25, @ as %40, / as %2F, # as %23, ? as %3F, : as %3A")

	urlScheme  = regexp.MustCompile(`^postgres(ql)?://`)
	badEscape  = regexp.MustCompile(`%([^0-9A-Fa-f]|.[^0-9A-Fa-f]|.?$)`)
	userinfo   = regexp.MustCompile(`^[A-Za-z0-9._~!$&'()*+,;=%-]*(:[A-Za-z0-9._~!$&'()*+,;=:%-]*)?@`)
	urlUnsafe  = regexp.MustCompile(`[#\s\x00-\x1f\x7f]`)
	pgSettings = regexp.MustCompile(`(?:^|[\s?&])(sslmode|connect_timeout|port|target_session_attrs|sslrootcert|sslnegotiation|service|channel_binding)\s*=\s*('[^']*'|[^\s&]+)`)
)

func (databaseURL) must() string {
	return "postgres://user:password@host:port/database, or key=value pairs as Postgres takes them"
}

func (databaseURL) read(value any) (any, error) {
	text, ok := value.(string)
	if !ok {
		return nil, errWrong
	}
	return text, CheckDatabaseURL(text)
}

// CheckDatabaseURL reports why Postgres clients cannot connect with text, without repeating a word of it: of a
// malformed URL nobody can say where the password ends.
func CheckDatabaseURL(text string) error {
	if text == "" {
		return errors.New("empty")
	}
	if scheme := urlScheme.FindString(text); scheme != "" && needsEncoding(text[len(scheme):]) {
		return errEncode
	}
	if _, err := pgx.ParseConfig(text); err != nil {
		return wrongSetting(text)
	}
	return nil
}

// needsEncoding tells whether what follows the scheme has a password (or user) in it with characters that
// end it too early. pgx accepts some of these and connects to a host that is a piece of the password.
func needsEncoding(rest string) bool {
	if urlUnsafe.MatchString(rest) || badEscape.MatchString(rest) || strings.Count(rest, "@") > 1 {
		return true
	}
	return strings.Contains(rest, "@") && !userinfo.MatchString(rest)
}

// wrongSetting names the setting that pgx refuses, if it is one of those that are wrong by themselves.
func wrongSetting(text string) error {
	for _, setting := range pgSettings.FindAllStringSubmatch(text, -1) {
		// With a host, for without TLS settings are not looked at.
		if _, err := pgx.ParseConfig("host=localhost " + setting[1] + "=" + setting[2]); err != nil {
			return fmt.Errorf("its setting %s is wrong", setting[1])
		}
	}
	return errors.New("which Postgres clients cannot read")
}
