package supervisor

import (
	"slices"
	"strings"
)

// childEnv is env without what the process manager said to the supervisor alone: a child that answered to
// it would speak for the whole.
func childEnv(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return name == "NOTIFY_SOCKET" || strings.HasPrefix(name, "WATCHDOG_") || strings.HasPrefix(name, "LISTEN_")
	})
}
