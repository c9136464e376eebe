package platform

import (
	"math"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
)

const (
	mounted2 = "25 30 0:22 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
	mounted1 = "21 15 0:17 / /sys/fs/cgroup ro - tmpfs tmpfs ro,mode=755\n" +
		"24 21 0:20 / /sys/fs/cgroup/cpu rw shared:7 - cgroup cgroup rw,cpu,cpuacct\n" +
		"35 21 0:32 / /sys/fs/cgroup/memory rw shared:9 - cgroup cgroup rw,memory\n"
	none1 = "9223372036854771712\n"
)

// tree is a root directory with the files of one process, whose resources aren't limited.
func tree(files map[string]string) teller {
	all := fstest.MapFS{}
	for name, text := range files {
		all[strings.TrimPrefix(name, "/")] = &fstest.MapFile{Data: []byte(text)}
	}
	return teller{
		files:  all,
		rlimit: func(int) (uint64, bool) { return math.MaxUint64, true },
		memory: func() (uint64, bool) { return 0, false },
	}
}

func process(mountinfo, cgroup string, files map[string]string) teller {
	t := tree(files)
	t.files.(fstest.MapFS)["proc/self/mountinfo"] = &fstest.MapFile{Data: []byte(mountinfo)}
	t.files.(fstest.MapFS)["proc/self/cgroup"] = &fstest.MapFile{Data: []byte(cgroup)}
	return t
}

type bound struct {
	bytes, used uint64
	file        string
}

// boundsOf returns the rows, and checks the name and words of each.
func boundsOf(t *testing.T, of teller) (all []bound) {
	for _, l := range of.limits() {
		words, file, found := strings.Cut(strings.TrimSuffix(l.Raise, ")"), " (")
		assert.True(t, found, l.Raise)
		assert.Equal(t, map[string]string{
			"cgroup memory.max":               "docker run --memory, systemd MemoryMax",
			"cgroup memory.high":              "systemd MemoryHigh",
			"cgroup v1 memory.limit_in_bytes": "docker run --memory, systemd MemoryLimit",
		}[l.Name], words)
		all = append(all, bound{l.Bytes, l.Used, file})
	}
	return all
}

type groupCase struct {
	mountinfo, cgroup string
	files             map[string]string
	want              []bound
}

func runGroups(t *testing.T, cases map[string]groupCase) {
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, boundsOf(t, process(c.mountinfo, c.cgroup, c.files)))
		})
	}
}

func TestGroupsOfVersion2(t *testing.T) {
	const max, high, current, stat = "/memory.max", "/memory.high", "/memory.current", "/memory.stat"
	const cg = "/sys/fs/cgroup"
	const a, b, c = cg + "/a", cg + "/a/b", cg + "/a/b/c"
	runGroups(t, map[string]groupCase{
		"its own": {mounted2, "0::/a\n", map[string]string{a + max: "1000\n", a + current: "300\n"},
			[]bound{{1000, 300, a + max}}},
		"high is smaller": {mounted2, "0::/a\n", map[string]string{a + max: "1000\n", a + high: "800\n",
			a + current: "300\n"}, []bound{{800, 300, a + high}, {1000, 300, a + max}}},
		"high of a parent": {mounted2, "0::/a/b\n", map[string]string{a + high: "800\n", b + high: "max\n"},
			[]bound{{800, 0, a + high}}},
		"max is none": {mounted2, "0::/a\n", map[string]string{a + max: "max\n"}, nil},
		"zero is one": {mounted2, "0::/a\n", map[string]string{a + max: "0\n"}, []bound{{0, 0, a + max}}},
		"the parent is smaller": {mounted2, "0::/a/b/c\n", map[string]string{c + max: "1000\n", c + current: "10\n",
			b + max: "max\n", a + max: "500\n", a + current: "400\n"},
			[]bound{{500, 400, a + max}, {1000, 10, c + max}}},
		"the parent is larger and fuller": {mounted2, "0::/a/b\n", map[string]string{b + max: "500\n",
			a + max: "1000\n", a + current: "900\n"}, []bound{{1000, 900, a + max}, {500, 0, b + max}}},
		"cached files go": {mounted2, "0::/a\n", map[string]string{a + max: "1000\n", a + current: "900\n",
			a + stat: "anon 200\nfile 700\nactive_file 300\ninactive_file 350\nunevictable 50\n"},
			[]bound{{1000, 250, a + max}}},
		"more cached than used": {mounted2, "0::/a\n", map[string]string{a + max: "1000\n", a + current: "900\n",
			a + stat: "active_file 950\n"}, []bound{{1000, 0, a + max}}},
		"cached beyond all numbers": {mounted2, "0::/a\n", map[string]string{a + max: "9\n", a + current: "5\n",
			a + stat: "active_file 18446744073709551615\ninactive_file 2\n"}, []bound{{9, 3, a + max}}},
		"freed parts of huge pages go": {mounted2, "0::/a\n", map[string]string{a + max: "1000\n", a + current: "900\n",
			a + stat: "anon 200\nshmem 40\nactive_anon 300\ninactive_anon 250\ninactive_file 100\n"},
			[]bound{{1000, 490, a + max}}},
		"locked pages are in no list of these": {mounted2, "0::/a\n", map[string]string{a + max: "1000\n",
			a + current: "900\n", a + stat: "anon 600\nshmem 0\nactive_anon 300\ninactive_anon 250\nunevictable 350\n"},
			[]bound{{1000, 900, a + max}}},
		"tmpfs isn't counted apart": {mounted2, "0::/a\n", map[string]string{a + max: "1000\n", a + current: "900\n",
			a + stat: "anon 200\ninactive_anon 250\n"}, []bound{{1000, 900, a + max}}},
		"anonymous pages aren't counted": {mounted2, "0::/a\n", map[string]string{a + max: "1000\n",
			a + current: "900\n", a + stat: "shmem 0\ninactive_anon 250\n"}, []bound{{1000, 900, a + max}}},
		"blanks and backslashes": {"1 2 0:3 /a\\040\\134\\011 /c\\040g\\0121 rw - cgroup2 none rw\n",
			"0::/a \\\t/b:c d\n", map[string]string{"/c g\n1/b:c d/memory.max": "7\n"},
			[]bound{{7, 0, "/c g\n1/b:c d/memory.max"}}},
		"deleted": {mounted2, "0::/a/b (deleted)\n", map[string]string{a + max: "7\n"},
			[]bound{{7, 0, a + max}}},
		"no files":           {mounted2, "0::/a\n", nil, nil},
		"no mount":           {"", "0::/a\n", map[string]string{a + max: "7\n"}, nil},
		"no group":           {mounted2, "", map[string]string{cg + max: "7\n"}, nil},
		"garbage in numbers": {mounted2, "0::/a\n", map[string]string{a + max: "-5\n", cg + max: "1e3"}, nil},
		"garbage in use": {mounted2, "0::/a\n", map[string]string{a + max: "5", a + current: "many"},
			[]bound{{5, 0, a + max}}},
		"garbage in paths": {"x\n - \n1 2 3 4 5 6 - cgroup2 a b\n- cgroup2\n" + mounted2,
			"\n:\n::\n0::relative\n0:memory\n0::/a", map[string]string{a + max: "5"}, []bound{{5, 0, a + max}}},
	})
}

func TestGroupsInContainers(t *testing.T) {
	const top = "/sys/fs/cgroup/memory.max"
	runGroups(t, map[string]groupCase{
		"with a namespace": {mounted2, "0::/\n", map[string]string{top: "256\n"}, []bound{{256, 0, top}}},
		"named as outside": {mounted2, "0::/docker/0a1b\n", map[string]string{top: "256\n"}, []bound{{256, 0, top}}},
		"outside of the namespace": {mounted2, "0::/../../x\n", map[string]string{top: "256\n", "/x/memory.max": "1\n"},
			[]bound{{256, 0, top}}},
		"a part is mounted": {"1 2 0:3 /docker/0a1b /cg rw - cgroup2 none rw\n", "0::/docker/0a1b/x\n",
			map[string]string{"/cg/x/memory.max": "7\n", "/cg/memory.max": "8\n", "/memory.max": "1\n"},
			[]bound{{7, 0, "/cg/x/memory.max"}, {8, 0, "/cg/memory.max"}}},
		"a part beside is mounted": {"1 2 0:3 /docker/0a1 /cg rw - cgroup2 none rw\n", "0::/docker/0a1b\n",
			map[string]string{"/cg/b/memory.max": "7\n", "/cg/memory.max": "8\n"}, []bound{{8, 0, "/cg/memory.max"}}},
		"the mount begins above": {"1 2 0:3 /.. /cg rw - cgroup2 none rw\n", "0::/../x\n",
			map[string]string{"/cg/x/memory.max": "7\n"}, []bound{{7, 0, "/cg/x/memory.max"}}},
		"the shortest root of several": {"1 2 0:3 /a/b /part rw - cgroup2 none rw\n1 2 0:3 / /whole rw - cgroup2 " +
			"none rw\n1 2 0:3 /other /beside rw - cgroup2 none rw\n", "0::/a/b\n",
			map[string]string{"/part/memory.max": "7\n", "/whole/a/memory.max": "8\n", "/beside/memory.max": "9\n"},
			[]bound{{8, 0, "/whole/a/memory.max"}}},
		"the later of two": {"1 2 0:3 / /old rw - cgroup2 none rw\n1 2 0:3 / /new rw - cgroup2 none rw\n", "0::/\n",
			map[string]string{"/old/memory.max": "7\n", "/new/memory.max": "8\n"}, []bound{{8, 0, "/new/memory.max"}}},
		"a hidden mount": {mounted2 + "1 2 0:3 / /hidden rw - cgroup2 none rw\n", "0::/a\n",
			map[string]string{"/sys/fs/cgroup/a/memory.max": "7\n"}, []bound{{7, 0, "/sys/fs/cgroup/a/memory.max"}}},
		"the whole tree is hidden": {"1 2 0:3 / /hidden rw - cgroup2 none rw\n1 2 0:3 /a /part rw - cgroup2 none rw\n",
			"0::/a\n", map[string]string{"/part/memory.high": "7\n"}, []bound{{7, 0, "/part/memory.high"}}},
		"a hidden mount of version 1": {mounted1 + "1 2 0:3 / /hidden rw - cgroup none rw,memory\n", "4:memory:/a\n",
			map[string]string{"/sys/fs/cgroup/memory/a/memory.limit_in_bytes": "7\n"},
			[]bound{{7, 0, "/sys/fs/cgroup/memory/a/memory.limit_in_bytes"}}},
	})
}

func TestGroupsOfVersion1(t *testing.T) {
	const limit, usage, stat, hierarchy = "/memory.limit_in_bytes", "/memory.usage_in_bytes", "/memory.stat",
		"/memory.use_hierarchy"
	const group = "5:cpu,cpuacct:/wrong\n4:memory:/a/b\n1:name=memory:/wrong\n"
	const cg, b = "/sys/fs/cgroup/memory", "/sys/fs/cgroup/memory/a/b"
	const a = cg + "/a"
	runGroups(t, map[string]groupCase{
		"its own": {mounted1, group, map[string]string{b + limit: "1000\n", b + usage: "900\n", cg + limit: none1,
			b + stat: "total_active_file 100\ntotal_inactive_file 200\nactive_file 5\n" +
				"hierarchical_memory_limit 1000\n"},
			[]bound{{1000, 600, b + limit}}},
		"freed parts of huge pages go": {mounted1, group, map[string]string{b + limit: "1000\n", b + usage: "900\n",
			b + stat: "rss 1\ntotal_rss 200\ntotal_shmem 40\ntotal_active_anon 300\ntotal_inactive_anon 250\n" +
				"hierarchical_memory_limit 1000\n"},
			[]bound{{1000, 590, b + limit}}},
		"unlimited": {mounted1, group, map[string]string{b + limit: none1, a + limit: "9223372036854775807\n",
			b + stat: "hierarchical_memory_limit 9223372036854710272\n"}, nil},
		"the parent is smaller": {mounted1, group,
			map[string]string{b + limit: "1000\n", b + stat: "hierarchical_memory_limit 500\n",
				a + limit: "500\n", a + hierarchy: "1\n", a + usage: "20"},
			[]bound{{500, 20, a + limit}, {1000, 0, b + limit}}},
		"the parent does not count": {mounted1, group, map[string]string{b + limit: "1000\n", b + hierarchy: "0\n",
			a + limit: "500\n", a + hierarchy: "0\n", b + stat: "hierarchical_memory_limit 1000\n"},
			[]bound{{1000, 0, b + limit}}},
		"a group above the container": {"1 2 0:3 /a/b /cg rw - cgroup none rw,memory\n", group, map[string]string{
			"/cg" + limit: "1000\n", "/cg" + usage: "10\n", "/cg" + stat: "hierarchical_memory_limit 256\n"},
			[]bound{{256, 10, "of a group above /cg" + limit}, {1000, 10, "/cg" + limit}}},
		"above an unlimited container": {"1 2 0:3 /a/b /cg rw - cgroup none rw,memory\n", group, map[string]string{
			"/cg" + limit: none1, "/cg" + stat: "hierarchical_memory_limit 256\n"},
			[]bound{{256, 0, "of a group above /cg" + limit}}},
		"named as outside": {mounted1, group,
			map[string]string{cg + limit: "256\n", cg + stat: "hierarchical_memory_limit 256\n"},
			[]bound{{256, 0, cg + limit}}},
		"version 2 beside it without memory": {mounted1 + "41 21 0:38 / /unified rw - cgroup2 cgroup2 rw\n",
			group + "0::/a/b\n", map[string]string{b + limit: "1000\n", "/unified/a/b/cgroup.procs": "1\n"},
			[]bound{{1000, 0, b + limit}}},
		"no memory controller": {strings.ReplaceAll(mounted1, "memory", "pids"), group, map[string]string{
			"/sys/fs/cgroup/pids" + limit: "1\n"}, nil},
		"no files": {mounted1, group, map[string]string{b + stat: "hierarchical_memory_limit 256\n"}, nil},
	})
}

func FuzzGroups(f *testing.F) {
	f.Add(mounted2, "0::/a/b\n", "1000\n", "anon 5\nactive_file 6\nhierarchical_memory_limit 7\n")
	f.Add(mounted1, "4:memory:/../a\n", none1, "total_active_file 18446744073709551615\n")
	f.Add("1 2 0:3 /\\04 /\\377\\040 rw - cgroup2 a memory\n", "0::/ (deleted)\n1:memory:", "max", "")
	f.Fuzz(func(t *testing.T, mountinfo, cgroup, number, stat string) {
		files := map[string]string{}
		for _, d := range slices.Concat(append(cgroupDirectories(mountinfo, cgroup, unified),
			cgroupDirectories(mountinfo, cgroup, memory1)...)...) {
			assert.Equal(t, path.Clean(d), d)
			assert.True(t, path.IsAbs(d))
			for _, name := range []string{"memory.max", "memory.current", "memory.limit_in_bytes",
				"memory.usage_in_bytes"} {
				files[path.Join(d, name)] = number
			}
			files[path.Join(d, "memory.stat")] = stat
		}
		all := process(mountinfo, cgroup, files).limits()
		for i, l := range all {
			assert.False(t, unlimited(l.Bytes))
			assert.LessOrEqual(t, l.Rest(), l.Bytes)
			if i > 0 {
				assert.LessOrEqual(t, all[i-1].Rest(), l.Rest())
			}
		}
	})
}

// FuzzMountedGroup writes mountinfo as the kernel does, and expects the group's directory.
func FuzzMountedGroup(f *testing.F) {
	f.Add("/", "/sys/fs/cgroup", "a")
	f.Add("/docker/0 a", "/c\\g\t", "b: - \\040")
	f.Fuzz(func(t *testing.T, root, point, below string) {
		for _, text := range []string{root, point, below} {
			if strings.ContainsAny(text, "\n\x00") || strings.Contains("/"+text+"/", "/../") {
				t.Skip("no such name in a cgroup")
			}
		}
		root, point = path.Join("/", root), path.Join("/", point)
		escape := strings.NewReplacer(" ", `\040`, "\t", `\011`, "\\", `\134`).Replace
		mountinfo := "7 1 0:5 " + escape(root) + " " + escape(point) +
			" rw,relatime shared:1 master:2 - cgroup2 none rw"
		lists := cgroupDirectories(mountinfo, "0::"+path.Join(root, below), unified)
		if assert.Len(t, lists, 1) && assert.NotEmpty(t, lists[0]) {
			directories := lists[0]
			assert.Equal(t, path.Join(point, below), directories[0])
			assert.Equal(t, point, directories[len(directories)-1])
		}
	})
}
