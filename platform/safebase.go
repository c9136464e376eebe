package platform

import "runtime"

// SafeBase returns a base for Reserve where 64 GiB are free in a fresh process, whether the
// system's random layout is on or off: with 39-bit addresses in most runs, otherwise in every run.
// It returns 0 where no base is known to be safe. All machines of a kind have the same base:
//
//	amd64                          0x480000000000
//	arm64 with 48-bit addresses    0x900000000000
//	arm64 with 39-bit addresses    0x2000000000
//
// On amd64, and on arm64 with 48 bits, the base is above the following ranges. Where there are two
// numbers, the first is amd64's and the second arm64's.
//
//   - the addresses that the Go runtime chooses for its heap: since Go 1.26 a random one below 2^46
//     and 2^47, before that 0xc000000000 and 0x4000000000;
//   - the shadow of AddressSanitizer (up to 0x10007fff8000 and 0x201000000000);
//   - the C heap of a fixed executable.
//
// The base is below position independent executables (from 0x555555554000 and 0xaaaaaaaaa000) and
// below the system's own mappings, for any limit of the stack.
//
// With 39 bits no address is safe. The heap of Go 1.26 takes a random place in one start of eight,
// and in one start of sixty this place is within the 64 GiB. Reserve then returns an error. A build
// with GOEXPERIMENT=norandomizedheapbase64 rules this out. An unlimited stack (ulimit -s unlimited)
// puts the system's own mappings there.
//
// SafeBase returns 0 on 32-bit targets, other processors, other sizes of address, other systems,
// and in race builds.
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
