//go:build !linux && !darwin && !windows

package platform

func faults() (minor, major uint64, ok bool) { return 0, 0, false }

func residentPeak() (size uint64, ok bool) { return 0, false }

func memorySize() (size uint64, ok bool) { return 0, false }

func systemLimits() []Limit { return nil }
