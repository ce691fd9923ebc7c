package config

import (
	"strings"
	"testing"
	"time"
)

func TestLinesOfKeys(t *testing.T) {
	root, fault := scan(`a = """
not = a key
""" # b = 1
'b c' = [ # x
  1,
  { d.e = 2,
    f = "]" }]
[g]
h = '}'
[[w]]
q = 1
[w.j."k\u006c"]
m = 1979-05-27 07:32:00
[[w]]

q = 2
`)
	if fault != nil {
		t.Fatal(fault)
	}
	bc, w := root.key("b c"), root.key("w")
	for name, c := range map[string]struct {
		n    *node
		want int
	}{
		"a": {root.key("a"), 1}, "b c": {bc, 4}, "b c[0]": {bc.element(0), 5}, "b c[1]": {bc.element(1), 6},
		"b c[1].d.e": {bc.element(1).key("d").key("e"), 6}, "b c[1].f": {bc.element(1).key("f"), 7},
		"g": {root.key("g"), 8}, "g.h": {root.key("g").key("h"), 9},
		"w[0]": {w.element(0), 10}, "w[0].q": {w.element(0).key("q"), 11}, "w[0].j.kl": {w.element(0).key("j").key("kl"), 12},
		"w[0].j.kl.m": {w.element(0).key("j").key("kl").key("m"), 13}, "w[1]": {w.element(1), 14}, "w[1].q": {w.element(1).key("q"), 16},
		"w[1].unknown": {w.element(1).key("unknown"), 14},
	} {
		if c.n.line != c.want {
			t.Errorf("%s: got line %d, want %d", name, c.n.line, c.want)
		}
	}
}

// Files of the shapes that are worst for parsers are answered, not waited for: none takes time that grows with
// the square of its size.
func TestHostileFilesAreAnsweredSoon(t *testing.T) {
	const size = maxSize / 4
	fill := func(unit string) string { return strings.Repeat(unit, size/len(unit)) }
	for name, text := range map[string]string{
		"dots": fill("a."), "lists": "a = " + fill("["), "tables": "a = " + fill("{a="), "quotes": fill(`"`),
		"workers": fill("[[worker]]\n"), "keys under a long name": "[" + strings.Repeat("a", size/2) + "]\n" + fill("a=1\n"),
		"a long key": fill("a") + "=1", "days": "lease = \"" + fill("9d") + "\"", "variables": "lease = \"" + fill("${A}") + "\"",
	} {
		start := time.Now()
		_, err := parse("queues.toml", text, env())
		if err == nil {
			t.Errorf("%s: got no fault, want one", name)
		}
		if took := time.Since(start); took > 20*time.Second {
			t.Errorf("%s: got an answer after %v, want it within 20 s", name, took)
		}
	}
}
