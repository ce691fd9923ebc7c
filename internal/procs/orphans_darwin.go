package procs

// ReapOrphans does nothing here: init is the system's own, and nobody else inherits orphans.
func ReapOrphans(func(pid int) bool) (reaped int, err error) { return 0, nil }
