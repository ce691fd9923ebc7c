package supervisor

import (
	"io"
	"os"
	"testing"
	"time"
)

// On a busy machine the one who reads comes late, and what a child said last is what tells that its lease is free.
func TestLastWordsAreReadHoweverLateTheReader(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close() // somebody else holds it open: no end of file comes
	if _, err := w.WriteString("bye\n"); err != nil {
		t.Fatal(err)
	}
	if err := r.SetReadDeadline(time.Now().Add(-time.Second)); err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(&untilEmpty{r, maxPipe})
	if got := string(text); got != "bye\n" {
		t.Errorf("read after the deadline: got %q, want what was there", got)
	}
}
