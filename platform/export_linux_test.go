package platform

// LockLimit returns how many bytes the process may lock.
func LockLimit() (bytes uint64, unlimited bool) { return system.lockLimit() }
