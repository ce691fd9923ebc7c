package cli

import "os"

// maySetUser reports whether this process may start others as any user.
func maySetUser() bool { return os.Geteuid() == 0 }
