//go:build race || !linux || !(amd64 || arm64)

package platform

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"
)

// watch is empty: Track fails here.
type watch struct{}

func (*watch) open(unsafe.Pointer, uint64) error {
	if goBacked {
		return unsupported()
	}
	return fmt.Errorf("%w on %s/%s", errors.ErrUnsupported, runtime.GOOS, runtime.GOARCH)
}

func (*watch) scan(*[runsMost]PageRun, uint64, uint64, bool) (n int, next uint64, err error) {
	return 0, 0, errors.ErrUnsupported
}

func (*watch) close() error { return nil }
