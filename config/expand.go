package config

import "regexp"

// variable is the one form that is replaced. All other text with a $ in it, such as $$, $NAME, ${A:-x} and
// an unclosed ${A, stays as it is: passwords have such things in them.
var variable = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// expand replaces every ${NAME} in text, once: what comes from the environment is not looked at again.
// missing are the names that are not set.
func expand(text string, getenv func(string) (string, bool)) (expanded string, missing []string) {
	expanded = variable.ReplaceAllStringFunc(text, func(reference string) string {
		name := reference[2 : len(reference)-1]
		value, ok := getenv(name)
		if !ok {
			missing = append(missing, name)
		}
		return value
	})
	return expanded, missing
}
