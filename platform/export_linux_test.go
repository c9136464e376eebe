package platform

// LockLimit is how many bytes the process may lock.
func LockLimit() (bytes uint64, unlimited bool) { return system.lockLimit() }
