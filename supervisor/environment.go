package supervisor

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// childEnv is env without what the process manager said to the supervisor alone: a child that answered to
// it would speak for the whole.
func childEnv(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return name == "NOTIFY_SOCKET" || strings.HasPrefix(name, "WATCHDOG_") || strings.HasPrefix(name, "LISTEN_")
	})
}

// closeOnExec keeps the descriptors that whoever started the supervisor left open from going on to every
// child. Those this program opens are marked from the start.
func closeOnExec() {
	open, err := os.ReadDir("/dev/fd")
	if err != nil {
		return // no such folder: then there is no telling which are open
	}
	for _, entry := range open {
		if fd, err := strconv.Atoi(entry.Name()); err == nil && fd > 2 {
			syscall.CloseOnExec(fd)
		}
	}
}
