//go:build !linux

package step

func files() (limit uint64, ok bool)              { return 0, false }
func addresses() (limit, used uint64, ok bool)    { return 0, 0, false }
func lock(bytes uint64) (limit uint64, err error) { return 0, nil }
