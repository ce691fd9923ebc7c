package tryout

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPartsAreChosenByName(t *testing.T) {
	all := Parts[int]{{"serial", 1}, {"batch", 2}, {"pace", 3}}
	for list, want := range map[string]string{"": "serial,batch,pace", "pace,serial": "pace,serial"} {
		if chosen, err := all.Choose(list); err != nil || chosen.Names() != want {
			t.Errorf("Choose %q: got %s (error %v), want %s", list, chosen.Names(), err, want)
		}
	}
	if _, err := all.Choose("pace,start"); err == nil || !strings.Contains(err.Error(), "serial,batch,pace") {
		t.Errorf("unknown part: got %v, want an error that names the parts there are", err)
	}
}

func TestTailIsTheEndOfAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte("a\nb\nc\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for n, want := range map[int]string{2: "b\nc", 9: "a\nb\nc"} {
		if got := Tail(path, n); got != want {
			t.Errorf("the last %d lines: got %q, want %q", n, got, want)
		}
	}
	if got := Tail(path+"-that-is-not-there", 2); got == "" {
		t.Error("of no file: got nothing, want why")
	}
}
