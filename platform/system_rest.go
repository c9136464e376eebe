//go:build !linux

package platform

import (
	"errors"
	"fmt"
	"runtime"
)

// missing isn't measured: QueryWorkingSetEx of Windows takes a record for each page, too slow for a
// report of a large budget.
func missing(uintptr, uint64) (pages int, ok bool) { return 0, false }

func threads() (count int, stack uint64, ok bool) { return 0, 0, false }

func mappings() (used, most uint64, ok bool) { return 0, 0, false }

func watchLimits(func([]Limit, []string), func(LimitEvents)) (stop func(), err error) {
	return nil, fmt.Errorf("platform: watch limits: %w on %s", errors.ErrUnsupported, runtime.GOOS)
}
