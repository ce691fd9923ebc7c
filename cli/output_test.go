package cli

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestUserTextIsMadeVisible(t *testing.T) {
	for in, want := range map[string]string{
		"plain é 😀 \\ \"":    "plain é 😀 \\ \"",
		"\x1b[2J\x1b[31mred": `\x1b[2J\x1b[31mred`,
		"\x1b]0;t\x07":       `\x1b]0;t\a`,
		"a\r\nb\tc":          `a\r\nb\tc`,
		"\u2028\u202e\u009b": `\u2028\u202e\u009b`,
		"\x9b31m\xff":        `\x9b31m\xff`,
		"\ufffd":             "\ufffd",
	} {
		if got := shown(in); got != want {
			t.Errorf("visible(%+q) = %q, want %q", in, got, want)
		}
	}
}

func TestJSONHasOnlyPrintableCharactersAndTheSameValue(t *testing.T) {
	const text = "\x1b\x7f\u0085\u009b\u2028\u202e\U000e0001 é 😀 <&>"
	var b strings.Builder
	if err := printJSON(&b, text); err != nil {
		t.Fatal(err)
	}
	if want := `"\u001b\u007f\u0085\u009b\u2028\u202e\udb40\udc01 é 😀 <&>"` + "\n"; b.String() != want {
		t.Errorf("JSON = %s, want %s", b.String(), want)
	}
	var back string
	if err := json.Unmarshal([]byte(b.String()), &back); err != nil || back != text {
		t.Errorf("read back %+q, %v, want %+q", back, err, text)
	}
}
