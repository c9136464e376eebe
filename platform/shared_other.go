//go:build !linux

package platform

import (
	"errors"
	"fmt"
	"runtime"
)

func openShared(string, uint64, []byte, func([]byte, uint64) error) (*Shared, bool, error) {
	return nil, false, fmt.Errorf("%w on %s", errors.ErrUnsupported, runtime.GOOS)
}

func (s *Shared) sync() error                        { return errors.ErrUnsupported }
func (s *Shared) unmap() error                       { return errors.ErrUnsupported }
func (s *Shared) identity() (id [32]byte, err error) { return id, errors.ErrUnsupported }
