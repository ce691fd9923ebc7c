package config

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// weights is a table of lanes. Its entries are read one by one: each has a line of its own.
type weights struct {
	lane   words
	weight whole
	most   int // entries
}

func (w weights) must() string {
	return fmt.Sprintf("a table of at most %d entries: %s, and %s", w.most, w.lane.must(), w.weight.must())
}

func (w weights) read(any) (any, error) { return nil, errWrong }

// weights reads the entries of the table of lanes.
func (c *checker) weights(w weights, tree map[string]any, lines *node, label string) (any, bool) {
	var lanes map[string]int
	if len(tree) > w.most {
		c.fault(lines.line, label, "has %d entries, must be %s", len(tree), w.must())
		return lanes, false
	}
	before := len(c.faults)
	for _, lane := range slices.Sorted(maps.Keys(tree)) {
		line, entry := lines.key(lane).line, label+"."+showKey(lane)
		if isWorkerKey(lane) {
			c.fault(line, entry, "is a lane that is called like a key of [[worker]], must stand above [worker.%s] if it is meant to be that key; "+
				"a lane of that name cannot have a weight", lanesKey)
			continue
		}
		if _, err := w.lane.read(lane); err != nil {
			c.fault(line, entry, "is the weight of a lane, must be named by %s", w.lane.must())
		}
		if _, isTable := tree[lane].(map[string]any); isTable {
			c.fault(line, entry, "is a table, must be %s; a lane with a dot in its name is written in quotes, as in %s = 1",
				w.weight.must(), strconv.Quote("a.b"))
			continue
		}
		if weight, ok := c.single(w.weight, tree[lane], line, entry, false); ok {
			if lanes == nil {
				lanes = map[string]int{}
			}
			lanes[lane] = weight.(int)
		}
	}
	return lanes, len(c.faults) == before
}

// isWorkerKey tells of the names that a lane cannot have in the file: a key that was added below [worker.lanes] would
// else be the weight of a lane that nobody uses, and what it limits have no limit.
func isWorkerKey(name string) bool {
	return name == jobTable || slices.Contains(names(workerKeys), name)
}
