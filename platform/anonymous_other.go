//go:build !linux

package platform

func appendAnonymous(list, _ []Mapping) ([]Mapping, error) { return list, unsupported() }

func residentNow() (size uint64, ok bool) { return 0, false }
