package config

import (
	"strings"

	"github.com/BurntSushi/toml"
)

// What a key may be at most. The longest of ours are far below; the TOML library takes time and memory
// that grow with the square of these.
const (
	maxDepth   = 16
	maxKeySize = 1024 // of all parts of a key, its tables included
)

// node says on which line a key, a table or an element of a list stands. Nodes form the same tree as the
// values that the TOML library decodes; the library itself keeps no lines.
type node struct {
	line   int
	depth  int
	size   int // of the parts of its key, in bytes
	keys   map[string]*node
	list   []*node
	tables bool // a list made by [[…]] headers: later keys go into its last element
}

// key is the node of a key in this table. One that the index does not know stands where its table does.
func (n *node) key(name string) *node {
	if kid, ok := n.keys[name]; ok {
		return kid
	}
	return &node{line: n.line}
}

// element is the node of the i-th element of this list.
func (n *node) element(i int) *node {
	if i < len(n.list) {
		return n.list[i]
	}
	return &node{line: n.line}
}

// scanner reads just enough TOML to know which key stands on which line. It does not judge: where it meets
// what it does not expect it stops, and the TOML library tells what is wrong there.
type scanner struct {
	text    string
	pos     int
	line    int
	tooDeep int // the line of a key beyond maxDepth or maxKeySize; 0: none
}

// scan indexes text, which ends with a newline. Its fault is a key beyond the limits.
func scan(text string) (*node, *Fault) {
	s := scanner{text: text, line: 1}
	root := &node{line: 1}
	table, ok := root, true
	for ok {
		s.skip(" \t\n")
		switch {
		case s.pos == len(s.text):
			ok = false
		case s.text[s.pos] == '[':
			table, ok = s.header(root)
		default:
			ok = s.pair(table)
		}
	}
	if s.tooDeep > 0 {
		return nil, &Fault{Line: s.tooDeep, Text: "has a key that is nested too deep or is too long, must be one of the keys of queues.toml"}
	}
	return root, nil
}

// header reads [a.b] or [[a.b]] and is the table that the following keys belong to.
func (s *scanner) header(root *node) (*node, bool) {
	line := s.line
	s.pos++
	list := s.accept("[")
	parts, ok := s.key()
	if !ok || !s.accept("]") || list && !s.accept("]") {
		return nil, false
	}
	table, ok := s.descend(root, parts, line)
	if !ok {
		return nil, false
	}
	if list {
		table.tables = true
		return s.add(table, line)
	}
	return table.latest(), true
}

// pair reads key = value into table.
func (s *scanner) pair(table *node) bool {
	line := s.line
	parts, ok := s.key()
	if !ok || !s.accept("=") {
		return false
	}
	n, ok := s.descend(table, parts, line)
	return ok && s.value(n)
}

func (s *scanner) value(n *node) bool {
	s.skipSpace()
	if s.pos == len(s.text) {
		return false
	}
	switch s.text[s.pos] {
	case '"', '\'':
		return s.stringValue()
	case '[':
		return s.array(n)
	case '{':
		return s.inlineTable(n)
	}
	end := strings.IndexAny(s.text[s.pos:], ",]}#\n")
	s.pos += max(end, 0)
	return end > 0
}

func (s *scanner) array(n *node) bool {
	s.pos++
	for {
		s.skip(" \t\n,")
		if s.accept("]") {
			return true
		}
		element, ok := s.add(n, s.line)
		if !ok || !s.value(element) {
			return false
		}
	}
}

func (s *scanner) inlineTable(n *node) bool {
	s.pos++
	for {
		s.skip(" \t\n,")
		if s.accept("}") {
			return true
		}
		if !s.pair(n) {
			return false
		}
	}
}

// stringValue passes over a string of any of the four kinds.
func (s *scanner) stringValue() bool {
	quote := s.text[s.pos : s.pos+1]
	long := strings.Repeat(quote, 3)
	if !strings.HasPrefix(s.text[s.pos:], long) {
		_, ok := s.quoted()
		return ok
	}
	start := s.pos
	for s.pos += 3; s.pos < len(s.text); s.pos++ {
		switch {
		case quote == `"` && s.text[s.pos] == '\\':
			s.pos++
		case strings.HasPrefix(s.text[s.pos:], long):
			// Up to two quotes may stand right before the closing three.
			s.pos += 3
			for range 2 {
				if s.pos < len(s.text) && s.text[s.pos] == quote[0] {
					s.pos++
				}
			}
			s.line += strings.Count(s.text[start:s.pos], "\n")
			return true
		}
	}
	return false
}

// quoted reads a string of one line and is the text with its quotes.
func (s *scanner) quoted() (string, bool) {
	start, quote := s.pos, s.text[s.pos]
	for s.pos++; s.pos < len(s.text); s.pos++ {
		switch c := s.text[s.pos]; {
		case c == '\n':
			return "", false
		case c == '\\' && quote == '"':
			s.pos++
		case c == quote:
			s.pos++
			return s.text[start:s.pos], true
		}
	}
	return "", false
}

// key reads the parts of a.b."c d".
func (s *scanner) key() (parts []string, ok bool) {
	for {
		s.skipSpace()
		part, ok := s.keyPart()
		if !ok {
			return nil, false
		}
		parts = append(parts, part)
		if len(parts) > maxDepth {
			s.tooDeep = s.line
			return nil, false
		}
		s.skipSpace()
		if !s.accept(".") {
			return parts, true
		}
	}
}

func (s *scanner) keyPart() (string, bool) {
	if s.pos < len(s.text) && (s.text[s.pos] == '"' || s.text[s.pos] == '\'') {
		quoted, ok := s.quoted()
		return unquote(quoted), ok
	}
	start := s.pos
	for s.pos < len(s.text) && isBare(s.text[s.pos]) {
		s.pos++
	}
	return s.text[start:s.pos], s.pos > start
}

func isBare(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}

// unquote leaves the escapes to the library, so that both have the same name for a key.
func unquote(quoted string) string {
	var key struct{ Name string }
	if _, err := toml.Decode("name = "+quoted, &key); err != nil {
		return quoted // the library will refuse the file for it
	}
	return key.Name
}

// descend is the node that parts name, seen from the table n. New nodes stand on the given line.
func (s *scanner) descend(n *node, parts []string, line int) (*node, bool) {
	for _, part := range parts {
		n = n.latest()
		kid, ok := n.keys[part]
		if !ok {
			kid = &node{line: line, depth: n.depth + 1, size: n.size + len(part)}
			if n.keys == nil {
				n.keys = map[string]*node{}
			}
			n.keys[part] = kid
		}
		if n = kid; s.beyondLimits(n) {
			return nil, false
		}
	}
	return n, true
}

// add appends an element to the list n.
func (s *scanner) add(n *node, line int) (*node, bool) {
	element := &node{line: line, depth: n.depth + 1, size: n.size}
	n.list = append(n.list, element)
	return element, !s.beyondLimits(element)
}

func (s *scanner) beyondLimits(n *node) bool {
	if n.depth > maxDepth || n.size > maxKeySize {
		s.tooDeep = s.line
	}
	return s.tooDeep > 0
}

// latest is the table that a key of n goes into.
func (n *node) latest() *node {
	if n.tables {
		return n.list[len(n.list)-1]
	}
	return n
}

// skip passes over the given bytes and over comments.
func (s *scanner) skip(bytes string) {
	for s.pos < len(s.text) {
		switch c := s.text[s.pos]; {
		case c == '#':
			s.pos += strings.IndexByte(s.text[s.pos:], '\n')
		case strings.IndexByte(bytes, c) < 0:
			return
		default:
			if c == '\n' {
				s.line++
			}
			s.pos++
		}
	}
}

func (s *scanner) skipSpace() {
	for s.pos < len(s.text) && (s.text[s.pos] == ' ' || s.text[s.pos] == '\t') {
		s.pos++
	}
}

// accept passes over want, if that is what comes next.
func (s *scanner) accept(want string) bool {
	if !strings.HasPrefix(s.text[s.pos:], want) {
		return false
	}
	s.pos += len(want)
	return true
}
