package supervisor

import (
	"slices"
	"strings"
	"testing"

	"queuekeeper/internal/wire"
)

func FuzzStatusesAreReadToTheEnd(f *testing.F) {
	f.Add("{\"is\":\"ready\"}\n")
	f.Add("\n\n{}\n{\"is\":7}\n{\"is\":\"bye\",\"free\":true}")
	f.Add(strings.Repeat("x", 3*maxStatusLine) + "\n{\"is\":\"beat\"}\n")
	f.Fuzz(func(t *testing.T, before string) {
		last := wire.Status{Is: wire.Bye, Detail: "last"}
		text := before + "\n" + `{"is":"bye","detail":"last"}` + "\n"
		got := slices.Collect(statuses(strings.NewReader(text)))
		if want := strings.Count(text, "\n"); len(got) != want || got[want-1] != last {
			t.Errorf("statuses of %q: got %d, the last %v, want %d, the last %v", text, len(got), got[len(got)-1], want, last)
		}
	})
}
