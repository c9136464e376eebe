package platform

import (
	"io/fs"
	"math"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"golang.org/x/sys/unix"
)

const statusText = "Name:\tserver\nVmSize:\t    4000 kB\nVmLck:\t      64 kB\nVmData:\t    1000 kB\n"

func TestResourceLimits(t *testing.T) {
	of := tree(map[string]string{"/proc/self/status": statusText,
		"/proc/meminfo": "MemTotal:  8192 kB\nMemFree:  1 kB\nMemAvailable:   6144 kB\n"})
	physical := Limit{"physical memory", 8192 << 10, 2048 << 10, "a machine with more memory, or fewer programs on it"}
	assert.Equal(t, []Limit{physical}, of.limits(), "nothing else is limited")

	of.rlimit = func(resource int) (uint64, bool) {
		return map[int]uint64{unix.RLIMIT_DATA: 1024 << 10, unix.RLIMIT_AS: 1 << 31}[resource], true
	}
	assert.Equal(t, []Limit{
		{"RLIMIT_DATA", 1024 << 10, 1000 << 10, "ulimit -d (in KiB), systemd LimitDATA"},
		physical,
		{"RLIMIT_AS", 1 << 31, 4000 << 10, "ulimit -v (in KiB), systemd LimitAS"},
	}, of.limits())

	of.rlimit = func(int) (uint64, bool) { return 5, false }
	assert.Equal(t, []Limit{physical}, of.limits(), "what cannot be asked is left out")
}

func TestThreads(t *testing.T) {
	for name, c := range map[string]struct {
		status string
		soft   uint64
		known  bool
		count  int
		stack  uint64
		ok     bool
	}{
		"limited":        {"Name:\tx\nThreads:\t12\n", 8 << 20, true, 12, 8 << 20, true},
		"unlimited":      {"Threads:\t1\n", math.MaxUint64, true, 1, 2 << 20, true},
		"no limit shown": {"Threads:\t1\n", 8 << 20, false, 0, 0, false},
		"no threads":     {statusText, 8 << 20, true, 0, 0, false},
		"no count":       {"Threads:\tmany\n", 8 << 20, true, 0, 8 << 20, false},
	} {
		of := tree(map[string]string{"/proc/self/status": c.status})
		of.rlimit = func(resource int) (uint64, bool) {
			assert.Equal(t, unix.RLIMIT_STACK, resource, name)
			return c.soft, c.known
		}
		count, stack, ok := of.threads()
		assert.Equal(t, [3]any{c.count, c.stack, c.ok}, [3]any{count, stack, ok}, name)
	}
	count, stack, ok := Threads()
	assert.True(t, ok)
	assert.Positive(t, count)
	assert.Positive(t, stack)
}

func TestPhysicalMemoryWithoutFiles(t *testing.T) {
	of := tree(nil)
	assert.Empty(t, of.limits())
	of.memory = func() (uint64, bool) { return 77, true }
	assert.Equal(t, []Limit{{"physical memory", 77, 0, "a machine with more memory, or fewer programs on it"}},
		of.limits())
	of = tree(map[string]string{"/proc/meminfo": "MemTotal:  8192 kB\nMemAvailable:   9000 kB\n"})
	assert.Zero(t, of.limits()[0].Used)
	of = tree(map[string]string{"/proc/meminfo": "MemTotal:  8192 kB\nMemAvailable: some kB\n"})
	assert.Zero(t, of.limits()[0].Used, "an old kernel does not tell")
	of = tree(map[string]string{"/proc/meminfo": "MemTotal:  99999999999999999999 kB\n"})
	assert.Empty(t, of.limits())
}

func TestSmallestRestFirst(t *testing.T) {
	all := []Limit{{Bytes: 100, Used: 10}, {Bytes: 50, Used: 60}, {Bytes: 40, Used: 40}, {Bytes: 90}}
	sortByRest(all)
	assert.Equal(t, []Limit{{Bytes: 40, Used: 40}, {Bytes: 50, Used: 60}, {Bytes: 90}, {Bytes: 100, Used: 10}}, all)
	assert.Zero(t, Limit{Bytes: 50, Used: 60}.Rest())
	assert.EqualValues(t, 90, Limit{Bytes: 100, Used: 10}.Rest())
}

func TestLockLimitAsTheKernelReadsIt(t *testing.T) {
	const first, other = "user:[4026531837]", "user:[4026532270]"
	for name, c := range map[string]struct {
		soft              uint64
		rights, namespace string
		bytes             uint64
		unlimited         bool
	}{
		"limited":                 {64 << 10, "0000000000000000", first, 64 << 10, false},
		"no limit":                {math.MaxUint64, "0000000000000000", first, math.MaxUint64, true},
		"zero":                    {0, "0000000000000000", first, 0, false},
		"root":                    {64 << 10, "000001ffffffffff", first, math.MaxUint64, true},
		"the right alone":         {64 << 10, "0000000000004000", first, math.MaxUint64, true},
		"every right but it":      {64 << 10, "000001ffffffbfff", first, 64 << 10, false},
		"root of a namespace":     {64 << 10, "000001ffffffffff", other, 64 << 10, false},
		"a kernel without these":  {64 << 10, "000001ffffffffff", "", math.MaxUint64, true},
		"rights that are garbage": {64 << 10, "root", first, 64 << 10, false},
	} {
		of := tree(map[string]string{"/proc/thread-self/status": "Name:\tx\nCapPrm:\t000001ffffffffff\nCapEff:\t" +
			c.rights + "\n"})
		if c.namespace != "" {
			of.files.(fstest.MapFS)["proc/self/ns/user"] = &fstest.MapFile{Data: []byte(c.namespace),
				Mode: fs.ModeSymlink}
		}
		of.rlimit = func(int) (uint64, bool) { return c.soft, true }
		bytes, unlimited := of.lockLimit()
		assert.Equal(t, c.bytes, bytes, name)
		assert.Equal(t, c.unlimited, unlimited, name)
	}
	of := tree(nil)
	of.rlimit = func(int) (uint64, bool) { return 0, false }
	bytes, unlimited := of.lockLimit()
	assert.Zero(t, bytes)
	assert.False(t, unlimited)
}

func TestWhatToDoAboutALock(t *testing.T) {
	of := tree(map[string]string{"/proc/self/status": statusText + "CapEff:\t0\n"})
	of.rlimit = func(int) (uint64, bool) { return 128 << 10, true }
	assert.Empty(t, of.lockRefusal(64<<10), "the limit is not why")
	assert.Equal(t, "RLIMIT_MEMLOCK allows 131072 bytes, 65536 are locked already, 135168 are needed in all: raise it "+
		"(ulimit -l 132, docker run --ulimit memlock=135168, systemd LimitMEMLOCK=135168) or grant CAP_IPC_LOCK",
		of.lockRefusal(68<<10))
}

func TestHugePagesByMode(t *testing.T) {
	const top, mib = "/sys/kernel/mm/transparent_hugepage/", 1 << 20
	const always, wish, never = "[always] madvise never\n", "always [madvise] never\n", "always madvise [never]\n"
	const inherit = "always [inherit] madvise never\n"
	for name, c := range map[string]struct {
		files      map[string]string
		base, size uint64
		text       string
	}{
		"for who asks": {map[string]string{"enabled": wish, "hpage_pmd_size": "2097152\n"}, 0, 2 * mib, ""},
		"for all":      {map[string]string{"enabled": always, "hpage_pmd_size": "2097152\n"}, 0, 2 * mib, ""},
		"for nobody": {map[string]string{"enabled": never}, 0, 2 * mib,
			top + "enabled says never: write madvise into it"},
		"never, but one size": {map[string]string{"enabled": never, "hugepages-2048kB/enabled": inherit,
			"hugepages-64kB/enabled": wish},
			0, mib, ""},
		"never, as all sizes": {map[string]string{"enabled": never, "hugepages-2048kB/enabled": inherit,
			"hugepages-64kB/enabled": never},
			0, 2 * mib, top + "enabled says never: write madvise into it"},
		"sizes that all say never": {map[string]string{
			"enabled": wish, "hugepages-2048kB/enabled": never, "hugepages-64kB/enabled": never},
			0, 2 * mib, top + "hugepages-*kB/enabled says never: write madvise into it"},
		"too small": {map[string]string{"enabled": wish, "hpage_pmd_size": "2097152\n"}, 0, mib,
			"the smallest huge page has 2097152 bytes here, and none fits into the range"},
		"not aligned": {map[string]string{"enabled": wish, "hugepages-2048kB/enabled": inherit}, mib,
			3*mib - 4096, "the smallest huge page has 2097152 bytes here, and none fits into the range"},
		"one in the middle": {map[string]string{"enabled": wish, "hugepages-2048kB/enabled": inherit}, mib,
			3 * mib, ""},
		"no such thing": {nil, 0, 2 * mib,
			"unsupported operation: this kernel shows no transparent huge pages: " +
				"open sys/kernel/mm/transparent_hugepage/enabled: file does not exist"},
		"garbage": {map[string]string{"enabled": "yes"}, 0, 2 * mib,
			`unsupported operation: ` + top + `enabled holds no mode: "yes"`},
		"sizes that are garbage": {map[string]string{"enabled": wish, "hugepages-x-kB/enabled": always,
			"hugepages-3kB/enabled":  always,
			"hugepages-64kB/enabled": "", "hpage_pmd_size": "3\n"}, 0, mib, ""},
	} {
		files := map[string]string{}
		for file, text := range c.files {
			files[top+file] = text
		}
		err := tree(files).checkHuge(c.base, c.size)
		if c.text == "" {
			assert.NoError(t, err, name)
		} else {
			assert.EqualError(t, err, c.text, name)
		}

		files["/proc/self/status"] = "VmData:\t1 kB\nTHP_enabled:\t0\n"
		err = tree(files).checkHuge(c.base, c.size)
		assert.Error(t, err, "the process does without")
		if c.text == "" {
			assert.EqualError(t, err, "/proc/self/status says THP_enabled 0: this process or its parent turned huge "+
				"pages off (prctl PR_SET_THP_DISABLE)")
		}
	}
}

func FuzzHugePages(f *testing.F) {
	f.Add("always [madvise] never\n", "hugepages-64kB", "[inherit]", uint64(1<<16), uint64(1<<20))
	f.Add("[", "hugepages-18014398509481984kB", "]", uint64(math.MaxUint64), uint64(math.MaxUint64))
	f.Fuzz(func(t *testing.T, mode, directory, own string, base, size uint64) {
		files := map[string]string{hugeDirectory + "/enabled": mode, hugeDirectory + "/" + directory + "/enabled": own,
			hugeDirectory + "/hpage_pmd_size": own}
		_ = tree(files).checkHuge(base, size) // any answer, and no panic
	})
}
