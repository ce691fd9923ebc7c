package config

import (
	"maps"
	"slices"
)

// defaults is the worker that every [[worker]] starts as.
func (c *checker) defaults(top table) Worker {
	w := Worker{Path: c.path, Dir: c.dir}
	t, _ := c.child(top, defaultsTable)
	t.name, t.keys, t.tables, t.defaults = "["+defaultsTable+"]", defaultsKeys(), []string{jobTable}, true
	c.worker(t, &w)
	return w
}

// workers is every [[worker]], in the order of the file.
func (c *checker) workers(top table, defaults Worker) []Worker {
	var workers []Worker
	first := map[string]int{} // the line of the first queue key with that value
	for _, t := range c.workerTables(top) {
		w := defaults
		w.Job = maps.Clone(defaults.Job)
		w.Line = t.lines.key("queue").line
		c.worker(t, &w)
		workers = append(workers, w)

		if t.tree["queue"] == nil {
			c.fault(t.lines.line, t.label+"queue", "is missing, must be in each [[worker]]")
		}
		if line, taken := first[w.Queue]; taken {
			c.fault(w.Line, t.label+"queue", "is %s, which has a worker already (line %d), must have exactly one",
				show(t.tree["queue"], false), line)
		} else if w.Queue != "" {
			first[w.Queue] = w.Line
		}
	}
	return workers
}

// workerTables is the tables of the worker key. A [worker] is one too, once its fault is told, so that what
// is wrong inside is told as well; and to TOML worker = [{…}] is the same as [[worker]].
func (c *checker) workerTables(top table) []table {
	lines := top.lines.key(workerTable)
	var tables []table
	add := func(tree map[string]any, lines *node) {
		tables = append(tables, table{
			tree: tree, lines: lines, name: "[[" + workerTable + "]]", label: workerLabel(tree),
			keys: workerKeys, tables: []string{jobTable},
		})
	}
	wrong := func(lines *node, is string) {
		c.fault(lines.line, workerTable, "is %s, must be a list of tables: each starts with [[worker]]", is)
	}
	switch raw := top.tree[workerTable].(type) {
	case nil:
	case []map[string]any:
		for i, tree := range raw {
			add(tree, lines.element(i))
		}
	case []any:
		for i, element := range raw {
			if tree, ok := element.(map[string]any); ok {
				add(tree, lines.element(i))
			} else {
				wrong(lines.element(i), show(element, false))
			}
		}
	case map[string]any:
		wrong(lines, "one table, [worker]")
		add(raw, lines)
	default:
		wrong(lines, show(raw, false))
	}
	return tables
}

// workerLabel names the queue if its name can be shown.
func workerLabel(tree map[string]any) string {
	if queue, ok := tree["queue"].(string); ok && queueForm.MatchString(queue) {
		return workerTable + "." + queue + "."
	}
	return workerTable + "."
}

// worker fills w from t. What t leaves out stays as it is in w.
func (c *checker) worker(t table, w *Worker) {
	c.fill(t, func(k key) any { return k.worker(w) })
	if t.tree["command"] != nil {
		w.CommandLine = t.lines.key("command").line
	}
	if t.tree["env"] != nil {
		w.EnvLine = t.lines.key("env").line
	}
	c.env(t, w)
	jobs, ok := c.child(t, jobTable)
	if !ok {
		return
	}
	if w.Job == nil {
		w.Job = map[string]Job{}
	}
	for _, name := range slices.Sorted(maps.Keys(jobs.tree)) {
		job := w.Job[name]
		c.job(jobs, name, &job)
		w.Job[name] = job
		if t.tree["jobs"] != nil && len(w.Jobs) > 0 && !slices.Contains(w.Jobs, name) {
			c.fault(jobs.lines.key(name).line, jobs.label+showKey(name), "is not in the jobs of this worker, %s", suggest(name, w.Jobs))
		}
	}
}

// job fills job from the table of that name in jobs.
func (c *checker) job(jobs table, name string, job *Job) {
	if _, err := jobName.read(name); err != nil {
		c.fault(jobs.lines.key(name).line, jobs.label+showKey(name), "is a table for a job, must be named by %s", jobName.must())
	}
	t, ok := c.child(jobs, name)
	if !ok {
		return
	}
	t.name, t.keys = "["+workerTable+"."+jobTable+".NAME]", jobKeys()
	c.fill(t, func(k key) any { return k.job(job) })
	if t.tree["command"] != nil {
		job.CommandLine = t.lines.key("command").line
	}
}
