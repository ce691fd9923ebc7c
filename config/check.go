package config

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// checker goes through a tree, fills a File and collects the faults.
type checker struct {
	path   string
	dir    string
	getenv func(string) (string, bool)
	faults Faults
}

// table is one table of the tree, and what the checker has to know of it.
type table struct {
	tree     map[string]any
	lines    *node
	name     string // what faults call it: "[[worker]]"
	label    string // what stands before its keys in faults: "worker.github."
	keys     []key
	tables   []string // the tables it may hold, as the file writes them: "[[worker]]"
	defaults bool     // a key that is left out gets its default
}

func (c *checker) fault(line int, key, format string, args ...any) {
	c.faults = append(c.faults, Fault{Path: c.path, Line: line, Key: key, Text: fmt.Sprintf(format, args...)})
}

func (c *checker) file(tree map[string]any, lines *node) File {
	file := File{Path: c.path, Dir: c.dir}
	top := table{
		tree: tree, lines: lines, name: "the top of the file", defaults: true,
		keys: topKeys, tables: []string{"[" + defaultsTable + "]", "[[" + workerTable + "]]"},
	}
	c.fill(top, func(k key) any { return k.file(&file) })
	file.Workers = c.workers(top, c.defaults(top))
	if len(file.Workers) == 0 {
		c.fault(0, "", "no workers defined in %s", c.path)
	}
	return file
}

// fill puts each key of t into its field and tells of the keys that t does not have.
func (c *checker) fill(t table, field func(key) any) {
	for _, k := range t.keys {
		raw, ok := t.tree[k.name]
		lines := t.lines.key(k.name)
		if !ok && t.defaults {
			raw, lines = k.def, &node{}
		}
		if raw == nil {
			continue
		}
		if value, ok := c.value(k, raw, lines, t.label+k.name); ok {
			reflect.ValueOf(field(k)).Elem().Set(reflect.ValueOf(value))
		}
	}
	c.unknown(t)
}

// value is what the field of k gets for raw, unless raw is at fault.
func (c *checker) value(k key, raw any, lines *node, label string) (any, bool) {
	switch kind := k.kind.(type) {
	case list:
		items, ok := raw.([]any)
		switch {
		case ok && len(items) > 0:
			return c.items(kind, items, lines, label)
		case ok && kind.none != nil:
			return kind.none, true
		}
	case weights:
		if tree, ok := raw.(map[string]any); ok {
			return c.weights(kind, tree, lines, label)
		}
	}
	return c.single(k.kind, raw, lines.line, label, k.secret)
}

// items reads the elements of a list one by one, for each has a line of its own.
func (c *checker) items(l list, items []any, lines *node, label string) (any, bool) {
	if l.most > 0 && len(items) > l.most {
		c.fault(lines.line, label, "is a list of %d, must be %s", len(items), l.must())
		return nil, false
	}
	values, sound := make([]any, len(items)), true
	first := map[any]int{} // the element that has it
	for i, item := range items {
		line, element := lines.element(i).line, label+"["+strconv.Itoa(i)+"]"
		value, ok := c.single(l.item, item, line, element, false)
		values[i] = value
		if ok && l.own != nil {
			j, taken := first[l.own(value)]
			if taken {
				c.fault(line, element, "is %s, with the same %s as %s[%d], must have its own", show(item, false), l.ownName, label, j)
				ok = false
			} else {
				first[l.own(value)] = i
			}
		}
		sound = sound && ok
	}
	if !sound {
		return nil, false
	}
	return slice(values), true
}

// slice is values, of which there is at least one, as a slice of their own type.
func slice(values []any) any {
	s := reflect.MakeSlice(reflect.SliceOf(reflect.TypeOf(values[0])), 0, len(values))
	for _, v := range values {
		s = reflect.Append(s, reflect.ValueOf(v))
	}
	return s.Interface()
}

// single reads a value that is not a list. Faults show it as it is in the file, before variables are
// replaced, so that nothing of the environment gets into a report.
func (c *checker) single(k kind, raw any, line int, label string, secret bool) (any, bool) {
	value := raw
	if text, ok := raw.(string); ok {
		expanded, missing := expand(text, c.getenv)
		for _, name := range missing {
			c.fault(line, label, "%s", notSet(name, line == 0))
		}
		if len(missing) > 0 {
			return nil, false
		}
		value = expanded
	}
	field, err := k.read(value)
	if err != nil {
		shown := show(raw, secret)
		if text, _ := raw.(string); line == 0 && strings.HasPrefix(text, "${") { // the default of database_url
			shown = "left out, and so taken from the environment variable " + strings.Trim(text, "${}")
		}
		c.fault(line, label, "is %s%s, must be %s", shown, because(err), k.must())
	}
	return field, err == nil
}

func notSet(name string, byDefault bool) string {
	if byDefault {
		return fmt.Sprintf("is left out, and the environment variable %s is not set, must be one or the other", name)
	}
	return fmt.Sprintf("names the environment variable %s, which is not set, must be set", name)
}

func because(err error) string {
	if err == errWrong {
		return ""
	}
	return " (" + err.Error() + ")"
}

// child is the table of that name in t; ok is false if there is none, or another thing, which is a fault.
func (c *checker) child(t table, name string) (child table, ok bool) {
	child = table{lines: t.lines.key(name), label: t.label + showKey(name) + "."}
	switch raw := t.tree[name].(type) {
	case nil:
		return child, false
	case map[string]any:
		child.tree = raw
		return child, true
	default:
		c.fault(child.lines.line, t.label+showKey(name), "is %s, must be a table", show(raw, false))
		return child, false
	}
}
