package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode"
	"unicode/utf16"

	"queuekeeper/internal/visible"
)

// shown makes everything in s that is not a printable character readable, as Go writes it in strings: a job's name
// must not move the cursor, forge a line or turn the text around.
func shown(s string) string { return visible.Text(s, hidden) }

func hidden(r rune) bool { return !unicode.IsPrint(r) }

// table writes rows in aligned columns. Errors are left to w, which keeps them.
func table(w io.Writer, rows [][]string) {
	var aligned bytes.Buffer
	t := tabwriter.NewWriter(&aligned, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		for i, cell := range row {
			if i > 0 {
				fmt.Fprint(t, "\t")
			}
			fmt.Fprint(t, shown(cell))
		}
		fmt.Fprintln(t)
	}
	t.Flush() // a buffer takes all
	for line := range strings.Lines(aligned.String()) {
		fmt.Fprintln(w, strings.TrimRight(line, " \n"))
	}
}

// printJSON writes value as one indented document of printable characters.
func printJSON(w io.Writer, value any) error {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(value); err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	_, err := io.WriteString(w, escapeHidden(b.String()))
	return err
}

// escapeHidden writes what is not printable in a JSON document as \u escapes: it can only be inside a string.
func escapeHidden(doc string) string {
	var b strings.Builder
	for _, r := range doc {
		switch {
		case r == '\n' || !hidden(r):
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}
