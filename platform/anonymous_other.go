//go:build !linux

package platform

func appendAnonymous(list, _ []Mapping) ([]Mapping, uint64, error) { return list, 0, unsupported() }
