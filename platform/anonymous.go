package platform

// Mapping is a part of the process's addresses that no file backs and no [Reservation] holds.
type Mapping struct {
	Base    uintptr
	Size    uint64 // bytes
	Present uint64 // the resident bytes of Size
	// Name is the system's name for the mapping, or "": "[heap]", "[stack]", "[anon: Go: heap]",
	// "/memfd:frames (deleted)". Of mappings without a name, it is "---" for one without access,
	// and "[stack]" for one of up to 8 MiB above a guard, which is mostly a thread's stack.
	Name string
}

// AppendAnonymous appends the process's mappings to list, in the order of their addresses, and
// returns the extended list. process is the resident bytes of the whole process, files included.
//
// The list leaves out mappings of files, the zeroed data of the program and its libraries, the
// ranges of all Reservations, also of released ones, and the Size bytes from the Base of each of
// except, which don't overlap. The parts of a mapping around such a range are listed apart; a Size
// of 0 only splits the mapping. Mappings without access are listed with no bytes present. Before
// Linux 6.7, which has no PAGEMAP_SCAN, mincore counts the pages: those that were only read count
// too, though they take no memory, and so do pages of shared memory that only other processes use.
//
// AppendAnonymous costs about 1 µs for each mapping, and some ms for each GiB that is present, so
// don't call it in a frame. With room in the list it allocates nothing, unless the process has more
// mappings, or other names of them, than at earlier calls. Builds that check pointers (-asan)
// allocate. Any goroutine may call it; calls wait for each other. If the system can't be read, the
// error names the file or the call. With mincore, it names a mapping of more than a TiB, as
// AddressSanitizer has. Off Linux, and in race builds, the error wraps errors.ErrUnsupported.
func AppendAnonymous(list, except []Mapping) (all []Mapping, process uint64, err error) {
	return appendAnonymous(list, except)
}
