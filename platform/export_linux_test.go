package platform

import "golang.org/x/sys/unix"

func LockLimit() (bytes uint64, unlimited bool) { return system.lockLimit() }

// ParseAnonymous is for maps in which each program has 1 MiB of addresses.
func ParseAnonymous(maps string, known ...[2]uint64) []Mapping {
	f := anonymous{maps: procFile{text: []byte(maps)}, names: map[string]string{},
		imageEnd: func(head mapping) uint64 { return head.first + 1<<20 }}
	for _, k := range known {
		f.known = append(f.known, span{k[0], k[1]})
	}
	f.sortKnown()
	return f.appendMappings(nil)
}

// ImageEnd is imageEnd of a mapping from first to end.
func ImageEnd(first, end uint64) uint64 { return imageEnd(mapping{first: first, end: end}) }

func ResidentIn(status []byte) (size uint64, ok bool) { return residentIn(status) }

// CountsPages reports whether the kernel has PAGEMAP_SCAN.
func CountsPages() bool {
	procFiles.Lock()
	defer procFiles.Unlock()
	file, err := open(pagemapFile + "\x00")
	if err != nil {
		return false
	}
	defer func() { _ = unix.Close(file) }()
	_, errno := procFiles.count.resident(file, 0, 1<<20)
	return errno == 0
}
