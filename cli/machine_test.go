package cli_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"queuekeeper/supervisor"
)

// What check warns of a user is what keeps that user's child from working: each is then put right.
func TestCheckTellsWhatKeepsAUserFromWorking(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root starts children of other users")
	}
	s := newSite(t, `
[[worker]]
queue = "mail"
command = ["./private"]
user = "nobody"
[[worker]]
queue = "ours"
command = ["./private"]
`)
	s.write("private", "#!/bin/sh\n")
	above := filepath.Dir(s.dir)
	warnings := func() (told string) {
		for line := range strings.Lines(s.does(nil, "check")) {
			if strings.HasPrefix(line, "warning: ") {
				told += strings.NewReplacer(s.dir, "DIR", above, "ABOVE", "warning: queue mail: user nobody ", "").Replace(line)
			}
		}
		return told
	}
	nobody, err := supervisor.Identify("nobody")
	if err != nil {
		t.Fatal(err)
	}
	theirs := int(nobody.UID)
	if err := os.Chmod(above, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path  string
		owner int
		mode  os.FileMode
		want  string
	}{
		{s.path("private"), 0, 0o744, "cannot start the command ./private: the mode of DIR/private is -rwxr--r--\n"},
		{s.path("private"), 0, 0o701, ""},
		{s.path("private"), theirs, 0o611, "cannot start the command ./private: the mode of DIR/private is -rw---x--x\n"},
		{s.path("private"), theirs, 0o700, ""},
		{s.dir, 0, 0o766, "cannot enter the folder of the file, DIR: the mode of DIR is drwxrw-rw-\n" +
			"cannot start the command ./private: the mode of DIR is drwxrw-rw-\n"},
		{s.dir, 0, 0o711, ""},
		{above, 0, 0o700, "cannot enter the folder of the file, DIR: the mode of ABOVE is drwx------\n" +
			"cannot start the command ./private: the mode of ABOVE is drwx------\n"},
		{above, 0, 0o711, ""},
	} {
		if err := errors.Join(os.Chown(c.path, c.owner, 0), os.Chmod(c.path, c.mode)); err != nil {
			t.Fatal(err)
		}
		if got := warnings(); got != c.want {
			t.Errorf("%s of mode %o and user %d: got\n%s\nwant\n%s", c.path, c.mode, c.owner, got, c.want)
		}
	}
}
