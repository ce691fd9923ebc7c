package supervisor

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// table is one of docs/operations.md: what happens, by event and by state. Its first line names the states, the first
// word of each other line the event. A cell that begins with a dash cannot happen, and says why.
type table [][]string

const never = "—"

func TestCellsOfTheDocumentAreThoseThatAreTested(t *testing.T) {
	for mark, want := range map[string][]table{
		"<!-- cells: supervisor -->": {supervisorTable},
		"<!-- cells: child -->":      {childTable, leavingTable},
	} {
		got := documented(t, mark)
		if len(got) != len(want) {
			t.Fatalf("tables marked %s: got %d, want %d", mark, len(got), len(want))
		}
		for i := range want {
			for k := range max(len(got[i]), len(want[i])) {
				if k >= len(got[i]) || k >= len(want[i]) || !slices.Equal(got[i][k], want[i][k]) {
					t.Errorf("line %d of table %d marked %s: got\n%q, want\n%q", k, i, mark, got[i][min(k, len(got[i])-1)], want[i][min(k, len(want[i])-1)])
				}
			}
		}
	}
}

// documented reads the tables of the document that stand below a mark.
func documented(t *testing.T, mark string) (tables []table) {
	t.Helper()
	text, err := os.ReadFile("../docs/operations.md")
	if err != nil {
		t.Fatalf("read document: %v", err)
	}
	for _, part := range strings.Split(string(text), mark+"\n")[1:] {
		var read table
		for line := range strings.Lines(strings.TrimLeft(part, "\n")) {
			if !strings.HasPrefix(line, "|") {
				break
			}
			if strings.HasPrefix(line, "|---") {
				continue
			}
			cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
			for i := range cells {
				cells[i] = strings.TrimSpace(cells[i])
			}
			read = append(read, cells)
		}
		tables = append(tables, read)
	}
	return tables
}

// each runs a test for each cell of the table that can happen.
func (tab table) each(t *testing.T, test func(s *scene, says string)) {
	for _, line := range tab[1:] {
		for i, state := range tab[0][1:] {
			event, says := line[0], line[i+1]
			if strings.HasPrefix(says, never) {
				continue
			}
			t.Run(state+"/"+event, func(t *testing.T) {
				t.Parallel()
				test(&scene{T: t, state: state, event: event, released: map[string]bool{}}, says)
			})
		}
	}
}
