package platform_test

import (
	"bufio"
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/upfront-mem/upfront/platform"
)

const someMaps = `00400000-00480000 r-xp 00000000 fe:00 42                                 /opt/my game
00480000-00490000 rw-p 00080000 fe:00 42                                 /opt/my game
00490000-004a0000 ---p 00000000 00:00 0 
004b0000-00540000 rw-p 00000000 00:00 0 
00de5000-00e06000 rw-p 00000000 00:00 0                                  [heap]
10000000-10400000 rw-p 00000000 00:00 0 
10400000-14000000 ---p 00000000 00:00 0 
20000000-20001000 ---p 00000000 00:00 0 
20001000-20801000 rw-p 00000000 00:00 0 
30000000-30100000 rw-s 00000000 00:01 7                                  /memfd:two words (deleted)
31000000-31100000 rw-s 00000000 00:01 8                                  /dev/zero (deleted)
32000000-32100000 rw-s 00000000 00:06 9                                  /dev/dri/renderD128
40000000-40001000 r-xp 00000000 00:00 0                                  [vdso]
50000000-50002000 r-xp 00000000 00:00 0                                  [anon:code]
this line is cut
60000000-5fffffff rw-p 00000000 00:00 0 
70000000-70001000 r`

func TestParseAnonymous(t *testing.T) {
	all := platform.ParseAnonymous(someMaps)
	var got []string
	for _, m := range all {
		got = append(got, fmt.Sprintf("%x %x %x %s", m.Base, m.Size, m.Present, m.Name))
	}
	assert.Equal(t, []string{
		"500000 40000 40000 ",
		"de5000 21000 21000 [heap]",
		"10000000 400000 400000 ",
		"10400000 3c00000 0 ---",
		"20000000 1000 0 ---",
		"20001000 800000 800000 [stack]",
		"30000000 100000 100000 /memfd:two words (deleted)",
		"31000000 100000 100000 /dev/zero (deleted)",
		"50000000 2000 2000 [anon:code]",
	}, got)
}

func TestParseAnonymousLeavesOutKnownRanges(t *testing.T) {
	const maps = "10000-20000 rw-p 00000000 00:00 0 \n20000-30000 ---p 00000000 00:00 0 \n"
	for name, c := range map[string]struct {
		known [][2]uint64
		want  string
	}{
		"none":         {nil, "10000+10000=10000 20000+10000=0"},
		"all":          {[][2]uint64{{0x8000, 0x38000}}, ""},
		"a first part": {[][2]uint64{{0x8000, 0x11000}}, "11000+f000=f000 20000+10000=0"},
		"two within": {[][2]uint64{{0x11000, 0x12000}, {0x14000, 0x15000}},
			"10000+1000=1000 12000+2000=2000 15000+b000=b000 20000+10000=0"},
		"empty, split": {[][2]uint64{{0x14000, 0x14000}, {0x30000, 0x30000}},
			"10000+4000=4000 14000+c000=c000 20000+10000=0"},
		"empty beside one": {[][2]uint64{{0x14000, 0x18000}, {0x18000, 0x18000}, {0x14000, 0x14000}},
			"10000+4000=4000 18000+8000=8000 20000+10000=0"},
		"over a boundary":     {[][2]uint64{{0x18000, 0x28000}}, "10000+8000=8000 28000+8000=0"},
		"beside, on each end": {[][2]uint64{{0x8000, 0x10000}, {0x30000, 0x31000}}, "10000+10000=10000 20000+10000=0"},
	} {
		var got []string
		for _, m := range platform.ParseAnonymous(maps, c.known...) {
			got = append(got, fmt.Sprintf("%x+%x=%x", m.Base, m.Size, m.Present))
		}
		assert.Equal(t, c.want, strings.Join(got, " "), name)
	}
}

func TestResidentIn(t *testing.T) {
	for text, want := range map[string]string{
		"Name:\tx\nVmRSS:\t    4056 kB\nRssAnon:\t 1 kB\n": "4153344 true",
		"Name:\tx\nVmRSS:\t    4056 MB\n":                  "ignored false",
		"Name:\tx\nVmRSS:\t99999999999999999999 kB\n":      "ignored false",
		"Name:\tx\nVmRSS:":                                 "ignored false",
		"":                                                 "ignored false",
	} {
		size, ok := platform.ResidentIn([]byte(text))
		if !ok {
			size = 0
			want = strings.Replace(want, "ignored", "0", 1)
		}
		assert.Equal(t, want, fmt.Sprint(size, ok), text)
	}
}

// smapsResident returns the resident bytes of each mapping, by its first address.
func smapsResident(t *testing.T) map[uintptr]uint64 {
	smaps, err := os.ReadFile("/proc/self/smaps")
	require.NoError(t, err)
	all, at := map[uintptr]uint64{}, uintptr(0)
	for lines := bufio.NewScanner(bytes.NewReader(smaps)); lines.Scan(); {
		var first, end, kib uint64
		if n, _ := fmt.Sscanf(lines.Text(), "%x-%x ", &first, &end); n == 2 {
			at = uintptr(first)
		} else if n, _ := fmt.Sscanf(lines.Text(), "Rss: %d kB", &kib); n == 1 {
			all[at] = kib << 10
		}
	}
	return all
}

func anonymous(t *testing.T) []platform.Mapping {
	all, _, err := platform.AppendAnonymous(nil, nil)
	if platform.GoBacked || err != nil && strings.HasSuffix(err.Error(), " bytes, too many to count") {
		t.Skip("where the mappings can be counted, go test ./platform runs it:", err)
	}
	require.NoError(t, err)
	return all
}

// mapped is memory that no package of this module knows.
func mapped(t *testing.T, size int, flags int) []byte {
	b, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|flags)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, unix.Munmap(b)) })
	return b
}

func presentIn(all []platform.Mapping, b []byte) (size uint64) {
	first := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	for _, m := range all {
		if m.Base < first+uintptr(len(b)) && first < m.Base+uintptr(m.Size) {
			size += m.Present
		}
	}
	return size
}

func TestAppendAnonymousFindsWhatSmapsFinds(t *testing.T) {
	anonymous(t)
	hidden := mapped(t, 64*mib, unix.MAP_SHARED) // no other mapping merges with it
	for i := 0; i < 48*mib; i += 4 * kib {
		hidden[i] = 1
	}
	for range 10 {
		before, all, after := smapsResident(t), anonymous(t), smapsResident(t)
		assert.InDelta(t, 48*mib, presentIn(all, hidden), 256*kib, "the kernel may move pages meanwhile")
		var sum, least, most uint64 // the process goes on meanwhile
		for _, m := range all {
			first, whole := before[m.Base]
			if last, still := after[m.Base]; whole && still {
				sum, least, most = sum+m.Present, least+min(first, last), most+max(first, last)
			}
		}
		error := max(most/100, 256*kib)
		assert.GreaterOrEqual(t, sum+error, least)
		assert.LessOrEqual(t, sum, most+error)
	}
}

func TestAppendAnonymousLeavesOutReservations(t *testing.T) {
	r := commit(t, 32*mib, 0)
	_, err := r.Prefault()
	require.NoError(t, err)
	assert.Zero(t, presentIn(anonymous(t), contents(r)))
	at := r.Base()
	require.NoError(t, r.Release())
	all := anonymous(t)
	assert.Zero(t, presentIn(all, unsafe.Slice((*byte)(at), 32*mib)), "kept for the next owner")
}

func TestAppendAnonymousLeavesOutExceptions(t *testing.T) {
	anonymous(t)
	hidden := mapped(t, 8*mib, unix.MAP_SHARED|unix.MAP_POPULATE)
	at := uintptr(unsafe.Pointer(unsafe.SliceData(hidden)))
	all, _, err := platform.AppendAnonymous(nil, []platform.Mapping{{Base: at + mib, Size: 5 * mib}})
	require.NoError(t, err)
	assert.Equal(t, uint64(3*mib), presentIn(all, hidden))
}

func TestAppendAnonymousAllocatesNothing(t *testing.T) {
	list := anonymous(t)
	assert.Zero(t, testing.AllocsPerRun(10, func() {
		var err error
		if list, _, err = platform.AppendAnonymous(list[:0], nil); err != nil {
			panic(err)
		}
	}))
}

// TestAppendAnonymousCountsNoSharedZeros: only memory that the process has mapped and uses counts,
// as in smaps.
func TestAppendAnonymousCountsNoSharedZeros(t *testing.T) {
	anonymous(t)
	read := mapped(t, 64*mib, unix.MAP_PRIVATE|unix.MAP_NORESERVE)
	sum := byte(0)
	for i := 0; i < len(read); i += 4 * kib {
		sum += read[i]
	}
	require.Zero(t, sum)
	file, err := unix.MemfdCreate("filled", 0)
	require.NoError(t, err)
	defer func() { require.NoError(t, unix.Close(file)) }()
	_, err = unix.Write(file, make([]byte, 8*mib))
	require.NoError(t, err)
	filled, err := unix.Mmap(file, 0, 8*mib, unix.PROT_READ, unix.MAP_SHARED)
	require.NoError(t, err)
	defer func() { require.NoError(t, unix.Munmap(filled)) }()
	all := anonymous(t)
	if !platform.CountsPages() {
		t.Skip("this kernel doesn't count pages: on Linux 6.7 or later, go test ./platform runs it")
	}
	assert.LessOrEqual(t, presentIn(all, read), uint64(mib), "neighbours may merge with it")
	assert.Zero(t, presentIn(all, filled))
}

// TestAppendAnonymousAboveFiles: a file that is mapped below a mapping hides nothing of it, unless
// the file is a program's: then its zeroed data.
func TestAppendAnonymousAboveFiles(t *testing.T) {
	const above, code = "200000-300000 rw-p 00000000 00:00 0 \n", "/opt/game\n180000-190000 r-xp 00010000 fe:00 42 "
	for maps, want := range map[string]string{
		"170000-200000 rw-s 00000000 fe:00 42 /db\n":                                             "200000+100000",
		"170000-200000 rw-p 00000000 fe:00 42 /db\n":                                             "200000+100000",
		"170000-180000 r--p 00000000 fe:00 42 " + code + "/opt/game\n":                           "270000+90000",
		"170000-180000 r--p 00000000 fe:00 42 " + code + "/opt/game (deleted)\n":                 "200000+100000",
		"170000-180000 r--p 00010000 fe:00 42 " + code + "/opt/game\n":                           "200000+100000",
		"170000-180000 ---p 00000000 fe:00 42 " + code + "/opt/game\n":                           "200000+100000",
		"100000-180000 r--p 00000000 fe:00 42 " + code + "/opt/game\n":                           "200000+100000",
		"170000-180000 r-xp 00000000 fe:00 42 /opt/game\n180000-190000 rw-p 00000000 00:00 0 \n": "270000+90000",
	} {
		var got []string
		for _, m := range platform.ParseAnonymous(maps + above) {
			assert.Equal(t, m.Size, m.Present)
			got = append(got, fmt.Sprintf("%x+%x", m.Base, m.Size))
		}
		assert.Equal(t, want, strings.Join(got, " "), maps)
	}
	large := "1000-2000 ---p 00000000 00:00 0 \n2000-4002000 rw-p 00000000 00:00 0 \n"
	assert.Empty(t, platform.ParseAnonymous(large)[1].Name, "too large for a thread's stack")
}

// library maps a file as the loader does a library with three pages of its file, whose header
// change alters, and 16 pages above. Of these, zeroed are the library's.
func library(t *testing.T, zeroed int, change func(*elf.Header64, []elf.Prog64)) (above []byte) {
	if unsafe.Sizeof(uintptr(0)) != 8 {
		t.Skip("the header of this test has 64 bits: go test ./platform on amd64 or arm64 runs it")
	}
	page := os.Getpagesize()
	h := elf.Header64{Ident: [16]byte{0x7f, 'E', 'L', 'F', 2, 1, 1}, Phoff: 64, Phentsize: 56, Phnum: 3}
	at := func(i int) uint64 { return 0x10000 + uint64(i*page) }
	segments := []elf.Prog64{
		{Type: uint32(elf.PT_LOAD), Vaddr: at(0) + 8, Filesz: 100, Memsz: 100},
		{Type: uint32(elf.PT_LOAD), Vaddr: at(2), Filesz: uint64(page), Memsz: uint64((1+zeroed)*page) - 8},
		{Type: uint32(elf.PT_NOTE), Vaddr: at(50), Memsz: 8},
	}
	change(&h, segments)
	var text bytes.Buffer
	require.NoError(t, binary.Write(&text, binary.NativeEndian, h))
	require.NoError(t, binary.Write(&text, binary.NativeEndian, segments))
	path := filepath.Join(t.TempDir(), "library.so")
	require.NoError(t, os.WriteFile(path, append(text.Bytes(), make([]byte, 3*page-text.Len())...), 0o600))
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	base, err := unix.MmapPtr(-1, 0, nil, uintptr(21*page), unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, unix.MunmapPtr(base, uintptr(21*page))) })
	place := func(fd, first, pages, access, flags int) {
		t.Helper()
		_, err := unix.MmapPtr(fd, int64(first*page), unsafe.Add(base, first*page), uintptr(pages*page), access,
			unix.MAP_FIXED|unix.MAP_PRIVATE|flags)
		require.NoError(t, err)
	}
	place(int(file.Fd()), 0, 1, unix.PROT_READ, 0)
	place(int(file.Fd()), 1, 1, unix.PROT_READ|unix.PROT_EXEC, 0)
	place(int(file.Fd()), 2, 1, unix.PROT_READ|unix.PROT_WRITE, 0)
	place(-1, 3, 16, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON)
	above = unsafe.Slice((*byte)(unsafe.Add(base, 3*page)), 16*page)
	for i := range above {
		above[i] = 1
	}
	return above
}

// TestAppendAnonymousAboveALibrary: memory directly above a library counts, though the kernel has
// merged it with the library's zeroed data. Without a header the zeroed data counts too.
func TestAppendAnonymousAboveALibrary(t *testing.T) {
	anonymous(t)
	for name, c := range map[string]struct {
		zeroed, want int // pages
		change       func(*elf.Header64, []elf.Prog64)
	}{
		"zeroed data":     {3, 13, func(*elf.Header64, []elf.Prog64) {}},
		"no zeroed data":  {0, 16, func(*elf.Header64, []elf.Prog64) {}},
		"another format":  {3, 16, func(h *elf.Header64, _ []elf.Prog64) { h.Ident[3] = 'f' }},
		"far segments":    {3, 16, func(h *elf.Header64, _ []elf.Prog64) { h.Phoff = 1 << 60 }},
		"many segments":   {3, 16, func(h *elf.Header64, _ []elf.Prog64) { h.Phnum = 65535 }},
		"small segments":  {3, 16, func(h *elf.Header64, _ []elf.Prog64) { h.Phentsize = 16 }},
		"no segments":     {3, 16, func(h *elf.Header64, _ []elf.Prog64) { h.Phnum = 0 }},
		"nothing to load": {3, 16, func(_ *elf.Header64, s []elf.Prog64) { s[0].Type, s[1].Type = 0, 0 }},
	} {
		above := library(t, c.zeroed, c.change)
		assert.Equal(t, uint64(c.want*os.Getpagesize()), presentIn(anonymous(t), above), name)
	}
}

// TestImageEnd: the programs and libraries of this process end where their files say. A header that
// is gone has no end.
func TestImageEnd(t *testing.T) {
	maps, err := os.ReadFile("/proc/self/maps")
	require.NoError(t, err)
	count := 0
	for line := range strings.Lines(string(maps)) {
		var first, end, offset uint64
		var access, device, name string
		var node int
		_, _ = fmt.Sscanf(line, "%x-%x %s %x %s %d %s", &first, &end, &access, &offset, &device, &node, &name)
		file, err := elf.Open(name)
		if offset != 0 || err != nil {
			continue
		}
		page, least, most := uint64(os.Getpagesize()), ^uint64(0), uint64(0)
		for _, s := range file.Progs {
			if s.Type == elf.PT_LOAD {
				least, most = min(least, s.Vaddr), max(most, s.Vaddr+s.Memsz)
			}
		}
		require.NoError(t, file.Close())
		assert.Equal(t, first+(most+page-1)/page*page-least/page*page, platform.ImageEnd(first, end), line)
		count++
	}
	assert.Positive(t, count)
	gone := mapped(t, 1<<16, unix.MAP_PRIVATE)
	require.NoError(t, unix.Mprotect(gone, unix.PROT_NONE))
	at := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(gone))))
	assert.Zero(t, platform.ImageEnd(at, at+1<<16))
}
