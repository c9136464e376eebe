//go:build !linux && !darwin && !windows

package platform

import "unsafe"

func missing(base unsafe.Pointer, size uint64) (pages int, ok bool) { return 0, false }

func faults() (minor, major uint64, ok bool) { return 0, 0, false }

func residentPeak() (size uint64, ok bool) { return 0, false }

func memorySize() (size uint64, ok bool) { return 0, false }

func systemLimits() []Limit { return nil }

func threads() (count int, stack uint64, ok bool) { return 0, 0, false }

func mappings() (used, most uint64, ok bool) { return 0, 0, false }
