package platform

// Mapping is a part of the process's addresses that no file backs and no [Reservation] holds.
type Mapping struct {
	Base    uintptr
	Size    uint64 // bytes
	Present uint64 // the resident bytes of Size
	// Name is the system's name for the mapping, or "": "[heap]", "[stack]", "[anon: Go: heap]",
	// "/memfd:frames (deleted)". It is "[stack]" for any thread's stack.
	Name string
}

// AppendAnonymous appends the process's mappings to list, in the order of their addresses, and
// returns the extended list. process is the resident bytes of the whole process, files included.
//
// The list leaves out mappings of files, the zeroed data of the program and its libraries, all
// ranges of this package, and the Size bytes from the Base of each of except, which don't overlap.
// Mappings without access are listed with no bytes present. A page that was only read counts as
// present, though it takes no memory.
//
// AppendAnonymous costs about 1 µs for each mapping and 0.6 ms for each GiB, so don't call it in a
// frame. With room in the list it allocates nothing, except in builds that check pointers (-asan).
// Any goroutine may call it. If the system can't be read, the error names the file or the call. It
// names a mapping of more than a TiB, as AddressSanitizer has. Off Linux, and in race builds, the
// error wraps errors.ErrUnsupported.
func AppendAnonymous(list, except []Mapping) (all []Mapping, process uint64, err error) {
	return appendAnonymous(list, except)
}
