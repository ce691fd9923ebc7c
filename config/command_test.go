package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCheckCommandsTellsWhyAProgramCannotBeStarted(t *testing.T) {
	dir := t.TempDir()
	for name, file := range map[string]struct {
		mode os.FileMode
		text string
	}{
		"good.sh": {0o755, "#!/bin/sh\n"},
		"plain":   {0o644, "#!/bin/sh\n"},
		"nobang":  {0o755, "echo é\n"},
		"crlf":    {0o755, "#!/bin/sh\r\necho\r\n"},
		"orphan":  {0o755, "#!/no/such/ruby -w\n"},
		"elf":     {0o755, "\x7fELF\x02\x01\x01\x00"},
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(file.text), file.mode); err != nil {
			t.Fatal(err)
		}
	}
	must := ", must be a program that can be executed"
	for program, want := range map[string]string{
		"sh": "", "/bin/sh": "", "./good.sh": "", filepath.Join(dir, "good.sh"): "", "./elf": "",
		"good.sh":  "look for good.sh: executable file not found in $PATH" + must,
		"./none":   "look for DIR/none: no such file or directory" + must,
		"./":       "look for DIR: is a directory" + must,
		"./plain":  "look for DIR/plain: permission denied" + must,
		"./nobang": "start DIR/nobang: is a text without a #! line" + must,
		"./crlf":   "start DIR/crlf: has a #! line that ends in CRLF, must end in LF" + must,
		"./orphan": "start DIR/orphan: its #! line: look for /no/such/ruby: no such file or directory" + must,
	} {
		w := Worker{Queue: "q", Path: "queues.toml", Dir: dir, Command: []string{program}, CommandLine: 7}
		if want != "" {
			want = "queues.toml:7: worker.q.command: " + want
		}
		if got := strings.ReplaceAll(w.CheckCommands().Error(), dir, "DIR"); got != want {
			t.Errorf("%s: got %q, want %q", program, got, want)
		}
	}
}

func TestCheckCommandsLooksAtTheCommandsOfJobsToo(t *testing.T) {
	w := Worker{Queue: "q", Path: "queues.toml", Dir: "/", Job: map[string]Job{
		"B": {Command: []string{"/none/b"}, CommandLine: 9}, "A": {Command: []string{"/none/a"}, CommandLine: 12}, "C": {},
	}}
	const want = "queues.toml:9: worker.q.job.B.command: look for /none/b: no such file or directory, must be a program that can be executed\n" +
		"queues.toml:12: worker.q.job.A.command: look for /none/a: no such file or directory, must be a program that can be executed"
	if got := w.CheckCommands().Error(); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}
