package procs

// DropAmbient does nothing here: there are no capabilities.
func DropAmbient() error { return nil }
