package budget

import "github.com/upfront-mem/upfront/platform"

// SetLimits puts others in the place of the process's limits until restore.
func SetLimits(limits ...platform.Limit) (restore func()) {
	before := readLimits
	readLimits = func() []platform.Limit { return limits }
	return func() { readLimits = before }
}
