package cli

import "golang.org/x/sys/unix"

// maySetUser reports whether this process may start others as any user.
func maySetUser() bool {
	const both = 1<<unix.CAP_SETUID | 1<<unix.CAP_SETGID
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData // the kernel writes two
	return unix.Capget(&header, &data[0]) == nil && data[0].Effective&both == both
}
