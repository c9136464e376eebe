package platform

func LockLimit() (bytes uint64, unlimited bool) { return system.lockLimit() }
