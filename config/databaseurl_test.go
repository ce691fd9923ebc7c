package config

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// DB13: in every form that can carry it, a password of reserved characters is the one pgx will send.
func TestPasswordsOfReservedCharactersArriveUnchanged(t *testing.T) {
	const password = `p@ss/w#rd%zz[?:`
	quoted := "\n[[worker]]\nqueue = 'a'\n"
	t.Setenv("PGPASSWORD", password)
	for name, file := range map[string]File{
		"encoded":     mustLoad(t, `database_url = "postgres://app:p%40ss%2Fw%23rd%25zz%5B%3F%3A@db:5432/app"`+quoted),
		"key=value":   mustLoad(t, `database_url = "host=db user=app password='p@ss/w#rd%zz[?:'"`+quoted),
		"PGPASSWORD":  mustLoad(t, `database_url = "postgres://app@db/app"`+quoted),
		"variable":    mustLoad(t, `database_url = "host=db user=app password='${PW}'"`+quoted, "PW", password),
		"the default": mustLoad(t, quoted, "DATABASE_URL", "postgres://app:p%40ss%2Fw%23rd%25zz%5B%3F%3A@db/app"),
	} {
		config, err := pgx.ParseConfig(file.DatabaseURL)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if config.Password != password || config.Host != "db" {
			t.Errorf("%s: got password %q at %s, want %q at db", name, config.Password, config.Host, password)
		}
	}
}

func TestRawPasswordsAreRefusedAndNotShown(t *testing.T) {
	for _, password := range []string{
		"p@ss/w#rd%zz[?:", "p@ss", "pass/word", "pass?word", "pass#word", "pass%word", "pass%zzword", "pass word", "pass[word", "pass\"word", "påss", "pass\nword",
	} {
		got := report(t, "[[worker]]\nqueue = 'a'\n", "DATABASE_URL", "postgres://app:"+password+"@db.example:5432/app")
		const want = `queues.toml: database_url: is left out, and so taken from the environment variable DATABASE_URL (percent-encode the password: ` +
			`write % as %25, @ as %40, / as %2F, # as %23, ? as %3F, : as %3A), must be postgres://user:password@host:port/database, or key=value pairs as Postgres takes them`
		if got != want {
			t.Errorf("%q: got %s\nwant %s", password, got, want)
		}
	}
}

func TestWrongDatabaseURLsAreToldByTheirSetting(t *testing.T) {
	const must = ", must be postgres://user:password@host:port/database, or key=value pairs as Postgres takes them"
	for url, want := range map[string]string{
		"postgres://app:secret@db/app?connect_timeout=abc":    "a text that is not shown here (its setting connect_timeout is wrong)" + must,
		"postgres://app:secret@db/app?a=b&sslmode=verify-ful": "a text that is not shown here (its setting sslmode is wrong)" + must,
		"host=db password=secret sslmode=verify-ful":          "a text that is not shown here (its setting sslmode is wrong)" + must,
		"mysql://app:secret@db":                               "a text that is not shown here (which Postgres clients cannot read)" + must,
		"postgres://app:secret@db:port/app":                   "a text that is not shown here (which Postgres clients cannot read)" + must,
		"":                                                    `"" (empty)` + must,
	} {
		got := report(t, "database_url = '"+url+"'\n[[worker]]\nqueue = 'a'\n")
		if got != "queues.toml:1: database_url: is "+want || strings.Contains(got, "secret") {
			t.Errorf("%s:\ngot  %s\nwant %s", url, got, want)
		}
	}
}

func TestWithoutAnyDatabaseURLBothWaysToSetItAreTold(t *testing.T) {
	_, err := Load("testdata/two_workers_for_one_queue.toml", func(string) (string, bool) { return "", false })
	const want = "testdata/two_workers_for_one_queue.toml: database_url: is left out, and the environment variable DATABASE_URL is not set, must be one or the other\n"
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, want %s first", err, want)
	}
}
