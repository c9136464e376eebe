package platform

import "runtime"

// SafeBase is a base for Reserve where 64 GiB are free in a fresh process, in every run, with the system's random
// layout on or off; it is 0 where there is none. It is the same on every machine of a kind:
//
//	amd64                          0x480000000000
//	arm64 with 48-bit addresses    0x900000000000
//	arm64 with 39-bit addresses    0x2000000000
//
// On amd64, and arm64 with 48 bits, it lies above all that the Go runtime chooses for its heap: since Go 1.26 that is a
// random address below 2^46 and 2^47, before that 0xc000000000 and 0x4000000000. It lies above the shadow of
// AddressSanitizer (up to 0x10007fff8000 and 0x201000000000) and the C heap of a fixed executable, and below position
// independent executables (from 0x555555554000 and 0xaaaaaaaaa000) and what the system maps on its own, however the
// stack is limited.
//
// With 39 bits there is no such place: the heap of Go 1.26 begins anywhere in one start of eight, and within these 64
// GiB in one of sixty. Reserve then says so; GOEXPERIMENT=norandomizedheapbase64, when the program is built, rules it
// out. An unlimited stack (ulimit -s unlimited) puts the system's own mappings there.
//
// On 32-bit targets, other processors, other sizes of address, other systems, and in race builds it is 0.
func SafeBase() uintptr {
	if host.reserveAt == nil {
		return 0
	}
	return uintptr(safeBase(runtime.GOARCH, host.addressBits()))
}

func safeBase(processor string, addressBits int) uint64 {
	switch {
	case processor == "amd64":
		return 0x4800_0000_0000
	case processor == "arm64" && addressBits == 48:
		return 0x9000_0000_0000
	case processor == "arm64" && addressBits == 39:
		return 0x20_0000_0000
	}
	return 0
}
