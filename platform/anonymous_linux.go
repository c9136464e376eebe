package platform

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math/bits"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// procFile is a file of /proc that is read into the same memory each time. os.ReadFile would
// allocate.
type procFile struct {
	path string // ends with a zero byte
	text []byte
}

// anonymous is the memory of AppendAnonymous, kept for the next call.
type anonymous struct {
	sync.Mutex
	maps, status procFile
	names        map[string]string // of mappings
	known        []span            // that aren't listed, in the order of addresses
	count        pageCount
	imageEnd     func(mapping) uint64 // imageEnd; tests replace it
}

var procFiles = anonymous{maps: procFile{path: "/proc/self/maps\x00"}, status: procFile{path: "/proc/self/status\x00"},
	names: map[string]string{}, imageEnd: imageEnd}

// read reads the file into f.text.
func (f *procFile) read() error {
	f.text = f.text[:0]
	fd, err := open(f.path)
	if err != nil {
		return fmt.Errorf("open %s: %w", f.path[:len(f.path)-1], err)
	}
	defer func() { _ = unix.Close(fd) }()
	for {
		f.text = slices.Grow(f.text, 16<<10)
		n, err := unix.Read(fd, f.text[len(f.text):cap(f.text)])
		switch {
		case err == unix.EINTR:
		case err != nil:
			return fmt.Errorf("read %s: %w", f.path[:len(f.path)-1], err)
		case n == 0:
			return nil
		default:
			f.text = f.text[:len(f.text)+n]
		}
	}
}

// open is unix.Open without its copy of the path.
func open(path string) (fd int, err error) {
	at := unix.AT_FDCWD
	for {
		fd, _, errno := unix.Syscall6(unix.SYS_OPENAT, uintptr(at), uintptr(unsafe.Pointer(unsafe.StringData(path))),
			unix.O_RDONLY|unix.O_CLOEXEC, 0, 0, 0)
		switch errno {
		case 0:
			return int(fd), nil
		case unix.EINTR:
		default:
			return -1, syscall.Errno(errno)
		}
	}
}

func appendAnonymous(list, except []Mapping) (all []Mapping, process uint64, err error) {
	if goBacked {
		return list, 0, unsupported()
	}
	f := &procFiles
	f.Lock()
	defer f.Unlock()
	if err := f.status.read(); err != nil {
		return list, 0, err
	}
	process, ok := residentIn(f.status.text)
	if !ok {
		return list, 0, fmt.Errorf("/proc/self/status has no VmRSS: %w", errors.ErrUnsupported)
	}
	if err := f.maps.read(); err != nil {
		return list, 0, err
	}
	f.known = spare.appendHeld(f.known[:0])
	for _, m := range except {
		f.known = append(f.known, span{uint64(m.Base), uint64(m.Base) + m.Size})
	}
	f.sortKnown()
	all, err = f.measure(f.appendMappings(list), len(list))
	return all, process, err
}

// sortKnown sorts the known ranges: an empty one precedes the range that begins where it does.
func (f *anonymous) sortKnown() {
	slices.SortFunc(f.known, func(a, b span) int { return cmp.Or(a.compare(b), cmp.Compare(a.end, b.end)) })
}

// residentIn returns the size in the line "VmRSS:     1234 kB".
func residentIn(status []byte) (size uint64, ok bool) {
	_, rest, _ := bytes.Cut(status, []byte("\nVmRSS:"))
	number, unit, _ := bytes.Cut(bytes.TrimLeft(rest, " \t"), []byte(" "))
	kib, err := strconv.ParseUint(string(number), 10, 53)
	return kib << 10, err == nil && bytes.HasPrefix(unit, []byte("kB"))
}

// mappingMost is the size of the largest mapping whose pages mincore counts, in 0.5 s.
// AddressSanitizer has one of 14 TiB.
const mappingMost = 1 << 40

// measure sets the present bytes of the mappings from first on. It removes mappings that are gone.
func (f *anonymous) measure(list []Mapping, first int) ([]Mapping, error) {
	file, err := open(pagemapFile + "\x00")
	if err == nil {
		defer func() { _ = unix.Close(file) }()
	}
	scans, known, kept := err == nil, false, list[:first]
	for _, m := range list[first:] {
		if m.Present != 0 {
			size, errno := uint64(0), unix.ENOTTY
			if scans {
				size, errno = f.count.resident(file, uint64(m.Base), uint64(m.Base)+m.Size)
				scans = errno != unix.ENOTTY && errno != unix.EINVAL && errno != unix.EFAULT
			}
			if !scans { // before Linux 6.7
				if m.Size > mappingMost {
					return list[:first], fmt.Errorf("the mapping at %#x has %d bytes, too many to count",
						m.Base, m.Size)
				}
				if pages, ok := missing(m.Base, m.Size); ok {
					size, errno = m.Size-min(m.Size, uint64(pages)*uint64(os.Getpagesize())), 0
				}
			}
			if errno != 0 {
				continue
			}
			known = true
			m.Present = size
		}
		kept = append(kept, m)
	}
	if !known {
		return kept[:first], fmt.Errorf("mincore counts no mapping: %w", errors.ErrUnsupported)
	}
	return kept, nil
}

// A thread's stack is a mapping above a guard, as far as it can be known: glibc's guards have a
// page, and its stacks 8 MiB.
const (
	guardMost = 64 << 10
	stackMost = 8 << 20
)

// appendMappings appends the mappings in f.maps, without the known ranges. Present is the size of a
// mapping with access, and 0 of others.
func (f *anonymous) appendMappings(list []Mapping) []Mapping {
	var last, head mapping // head is the last one that begins where its file does
	var image uint64       // the end of the last program or library
	for line := range bytes.Lines(f.maps.text) {
		m, ok := parseMapping(line)
		if !ok {
			continue
		}
		if m.head {
			head = m
		}
		if m.code && m.file && bytes.Equal(m.name, head.name) {
			image = f.imageEnd(head)
		}
		stack := m.name == nil && m.data && m.first == last.end && !last.file && last.none &&
			last.end-last.first <= guardMost && m.end-m.first <= stackMost
		last = m
		if m.name == nil { // the kernel merges zeroed data with the memory above
			m.first = min(m.end, max(m.first, image))
		}
		if m.file || m.first == m.end {
			continue
		}
		found := Mapping{Base: uintptr(m.first), Size: m.end - m.first, Name: f.name(m.name)}
		switch {
		case !m.none:
			found.Present = found.Size
		case m.name == nil:
			found.Name = noAccess
		}
		if stack {
			found.Name = "[stack]"
		}
		list = f.appendUnknown(list, found)
	}
	return list
}

// An elfHeader begins a program or library in ELF's format, and an elfSegment describes a segment.
// The types fit the formats of 32 and of 64 bits, which differ where the sizes of Go's uintptr and
// its alignment do.
type (
	elfHeader struct {
		ident                     [16]byte
		kind, machine             uint16
		version                   uint32
		entry, segments           uintptr
		sections                  uintptr
		flags                     uint32
		size                      uint16
		segmentSize, segmentCount uint16
	}
	elfSegment struct {
		kind                                   uint32
		offset, address, physical, inFile, all uintptr
	}
)

// imageEnd returns the end of the program or library whose file begins at the mapping. The zeroed
// data is below the end. imageEnd returns 0 if the header can't be read.
func imageEnd(head mapping) (end uint64) {
	// Another thread may unmap the header, or cut the file.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if recover() != nil {
			end = 0
		}
	}()
	at, size := unsafe.Add(nil, uintptr(head.first)), uintptr(head.end-head.first)
	h := (*elfHeader)(at)
	if string(h.ident[:4]) != "\x7fELF" || uintptr(h.segmentSize) < unsafe.Sizeof(elfSegment{}) || h.segments > size ||
		uintptr(h.segmentCount)*uintptr(h.segmentSize) > size-h.segments {
		return 0
	}
	const load = 1 // a segment that is mapped
	page := uintptr(os.Getpagesize())
	least, most := ^uintptr(0), uintptr(0)
	for i := range uintptr(h.segmentCount) {
		s := (*elfSegment)(unsafe.Add(at, h.segments+i*uintptr(h.segmentSize)))
		if s.kind == load {
			least, most = min(least, s.address&^(page-1)), max(most, (s.address+s.all+page-1)&^(page-1))
		}
	}
	if most < least {
		return 0
	}
	return head.first + uint64(most-least)
}

// appendUnknown appends the parts of a mapping that aren't known.
func (f *anonymous) appendUnknown(list []Mapping, m Mapping) []Mapping {
	first, end := uint64(m.Base), uint64(m.Base)+m.Size
	add := func(to uint64) {
		if first < to {
			list = append(list, Mapping{uintptr(first), to - first, min(m.Present, to-first), m.Name})
		}
	}
	i, _ := slices.BinarySearchFunc(f.known, first, func(s span, first uint64) int {
		return cmp.Compare(s.end, first+1) // ranges that end before the mapping are skipped
	})
	for ; i < len(f.known) && f.known[i].first < end; i++ {
		add(f.known[i].first)
		first = f.known[i].end
	}
	add(end)
	return list
}

// name returns the name as a string, the same for equal ones.
func (f *anonymous) name(text []byte) string {
	const most = 1000
	name, known := f.names[string(text)]
	if !known {
		if len(f.names) >= most {
			clear(f.names)
		}
		name = string(text)
		f.names[name] = name
	}
	return name
}

const noAccess = "---"

// mapping is a line of /proc/self/maps.
type mapping struct {
	first, end       uint64
	none, code, data bool   // no access; executable; writable and private
	file             bool   // of a file, a device or the kernel
	head             bool   // of its first bytes, which can be read
	name             []byte // nil if it has none
}

// parseMapping parses a line:
//
//	7f435bf60000-7f435c100000 rw-p 00000000 00:00 0     [heap]
func parseMapping(line []byte) (m mapping, ok bool) {
	var fields [5][]byte
	rest := bytes.TrimSpace(line)
	for i := range fields {
		fields[i], rest, _ = bytes.Cut(rest, []byte(" "))
	}
	from, to, _ := bytes.Cut(fields[0], []byte("-"))
	first, err := strconv.ParseUint(string(from), 16, 64)
	end, errEnd := strconv.ParseUint(string(to), 16, 64)
	access := fields[1]
	if err != nil || errEnd != nil || end <= first || bits.Len64(end-1) > bits.UintSize || len(access) != 4 {
		return m, false
	}
	m = mapping{first: first, end: end, none: string(access[:3]) == noAccess, code: access[2] == 'x',
		data: access[1] == 'w' && access[3] == 'p'}
	if rest = bytes.TrimLeft(rest, " "); len(rest) != 0 {
		m.name, m.file = rest, !isMemory(rest)
		m.head = m.file && access[0] == 'r' && len(bytes.Trim(fields[2], "0")) == 0
	}
	return m, true
}

// isMemory reports whether a mapping of that name has memory that no file backs. Memory that
// processes share has the name of a file.
func isMemory(name []byte) bool {
	for _, start := range []string{"[heap]", "[stack", "[anon", "/memfd:", "/dev/zero", "/dev/shm/", "/SYSV",
		"/anon_hugepage"} {
		if len(name) >= len(start) && string(name[:len(start)]) == start {
			return true
		}
	}
	return false
}
