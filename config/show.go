package config

import (
	"fmt"
	"strconv"
	"strings"
)

// show is a value of the TOML tree as the file has it, short enough for a fault. A secret is shown only if
// it is the name of a variable and no more.
func show(value any, secret bool) string {
	switch v := value.(type) {
	case string:
		if secret && variable.FindString(v) != v {
			return "a text that is not shown here"
		}
		return strconv.Quote(short(v))
	case int64, bool:
		return fmt.Sprint(v)
	case float64:
		text := strconv.FormatFloat(v, 'g', -1, 64)
		if strings.Trim(text, "-0123456789") == "" {
			text += ".0"
		}
		return text
	case []any:
		if len(v) == 0 {
			return "an empty list"
		}
		return "a list"
	case map[string]any:
		return "a table"
	case []map[string]any:
		return "a list of tables"
	}
	return "a date or time"
}

// short cuts text to a length that a line of a report can bear.
func short(text string) string {
	const longest = 60
	runes := []rune(text)
	if len(runes) <= longest {
		return text
	}
	return string(runes[:longest]) + "…"
}

// showKey is a key as the file has it: bare if it can be.
func showKey(name string) string {
	for i := range len(name) {
		if !isBare(name[i]) {
			return strconv.Quote(short(name))
		}
	}
	if name == "" {
		return `""`
	}
	return short(name)
}
