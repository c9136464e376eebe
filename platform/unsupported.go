//go:build !linux && !race

package platform

import (
	"errors"
	"fmt"
	"runtime"
)

var errUnsupported = fmt.Errorf("%w on %s", errors.ErrUnsupported, runtime.GOOS)
