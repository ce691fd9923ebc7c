package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestResultsReplaceThoseOfBefore(t *testing.T) {
	document := "# Rates\n\n" + openMark + "\nold\n" + closeMark + "\nend\n"
	for range 2 {
		placed, err := place(document, "new\n")
		if err != nil {
			t.Fatal(err)
		}
		document = placed
	}
	if want := "# Rates\n\n" + openMark + "\nnew\n\n" + closeMark + "\nend\n"; document != want {
		t.Errorf("document: got %q, want %q", document, want)
	}
	if _, err := place("# Rates\n", "new\n"); err == nil {
		t.Error("a document without the marks: got no error, want one")
	}
}

func TestDocumentHasAPlaceForResults(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "rates.md"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := place(string(text), ""); err != nil {
		t.Error(err)
	}
}

func TestSectionIsATableWithWhatIsWrongBelow(t *testing.T) {
	s := section{title: "Rates", head: []string{"a", "b"}, rows: [][]string{{"1", "2"}}, notes: []string{"a note"}, wrong: []string{"a fault"}}
	want := "### Rates\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\na note\n\na fault\n"
	if got := s.markdown(); got != want {
		t.Errorf("section: got %q, want %q", got, want)
	}
	if got, want := len(verdict{}.row(phase{})), len(ratesHead); got != want {
		t.Errorf("a row of rates: got %d cells, want %d", got, want)
	}
}

func TestLogsAreReadAndJoined(t *testing.T) {
	folder := t.TempDir()
	notes := "start 7 1000000 default\nanswer 7 3000000 200\nstart 7 9000000 default\n"
	if err := os.WriteFile(notesFile(folder, "q"), []byte(notes), 0o644); err != nil {
		t.Fatal(err)
	}
	l, err := readLog(folder, "q", []byte("q 7 2000000 200\nqq 8 2000000 200\nq 7 12000000 429\nq 7 13"))
	if err != nil {
		t.Fatal(err)
	}
	if len(l.starts) != 2 || len(l.answers) != 1 || len(l.arrivals) != 2 || l.arrivals[1].status != 429 || l.starts[0].lane != "default" {
		t.Errorf("log: got %+v, want two starts, one answer and two arrivals", l)
	}
	if got, want := l.way(99), 3*time.Millisecond; got != want {
		t.Errorf("way, p99: got %s, want %s, from the last start before it", got, want)
	}
	for _, line := range []string{"start x 1 y\n", "answer 1 2 three\n", "start 1\n"} {
		if _, err := parseNotes(line); err == nil || !strings.Contains(err.Error(), strings.TrimSpace(line)) {
			t.Errorf("note %q: got %v, want an error with it", line, err)
		}
	}
}
