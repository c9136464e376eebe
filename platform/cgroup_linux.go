package platform

import (
	"cmp"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
)

// controller names the hierarchy that limits the memory of groups. A system may have both.
type controller string

const (
	unified controller = ""       // version 2
	memory1 controller = "memory" // of version 1
)

// cgroups returns a row for each limited group of this process. It tries both versions: where both
// are mounted, the version without the memory controller has no files of these names.
func (t teller) cgroups() []Limit {
	mountinfo, own := t.text("proc/self/mountinfo"), t.text("proc/self/cgroup")
	return append(t.unified(t.groupDirectories(mountinfo, own, unified)),
		t.memory1(t.groupDirectories(mountinfo, own, memory1))...)
}

// groupDirectories returns the best list of cgroupDirectories in which a limit can be read. The
// best list of all may be hidden: by a mount on top of it, or in a directory of another user. If no
// limit can be read, groupDirectories returns that list all the same.
func (t teller) groupDirectories(mountinfo, own string, of controller) []string {
	lists := cgroupDirectories(mountinfo, own, of)
	if len(lists) > 1 {
		isShown := func(list []string) bool {
			return slices.ContainsFunc(list, func(directory string) bool { return t.hasLimit(directory, of) })
		}
		if i := slices.IndexFunc(lists, isShown); i > 0 {
			return lists[i]
		}
	}
	if len(lists) == 0 {
		return nil
	}
	return lists[0]
}

// hasLimit reports whether a file with a limit of the group can be read.
func (t teller) hasLimit(directory string, of controller) bool {
	files := []string{"memory.max", "memory.high"}
	if of == memory1 {
		files = []string{"memory.limit_in_bytes"}
	}
	return slices.ContainsFunc(files, func(file string) bool { return t.text(path.Join(directory, file)) != "" })
}

// unified reads version 2: every group above has its own limits, and its use includes that of the
// groups below.
func (t teller) unified(directories []string) (all []Limit) {
	for _, directory := range directories {
		for _, kind := range [][2]string{
			{"memory.max", "docker run --memory, systemd MemoryMax"},
			{"memory.high", "systemd MemoryHigh"},
		} {
			file := path.Join(directory, kind[0])
			bound, ok := t.number(file)
			if !ok || unlimited(bound) {
				continue
			}
			used, _ := t.number(path.Join(directory, "memory.current"))
			used = unreclaimable(used, t.stats(directory), "", "anon")
			all = append(all, Limit{"cgroup " + kind[0], bound, used, kind[1] + " (" + file + ")"})
		}
	}
	return all
}

const (
	hierarchical = "hierarchical_memory_limit " // a line of memory.stat: the smallest limit
	aboveGroup   = "of a group above "          // in Raise: the process can't see the limit's file
)

// memory1 reads version 1. A group's use counts for its parent only if memory.use_hierarchy is set.
// The innermost group reports the smallest limit of all its ancestors, including those that a
// container can't see.
func (t teller) memory1(directories []string) (all []Limit) {
	const name, raise = "cgroup v1 memory.limit_in_bytes", "docker run --memory, systemd MemoryLimit ("
	smallest := uint64(math.MaxUint64)
	var innermost Limit // the limit of all groups above
	for _, directory := range directories {
		file := path.Join(directory, "memory.limit_in_bytes")
		bound, ok := t.number(file)
		if !ok {
			continue
		}
		if hierarchy, ok := t.number(path.Join(directory, "memory.use_hierarchy")); innermost.Name != "" && ok &&
			hierarchy == 0 {
			break
		}
		used, _ := t.number(path.Join(directory, "memory.usage_in_bytes"))
		stats := t.stats(directory)
		used = unreclaimable(used, stats, "total_", "total_rss")
		if innermost.Name == "" {
			least, ok := stats[strings.TrimSpace(hierarchical)]
			if !ok {
				least = math.MaxUint64
			}
			innermost = Limit{name, least, used, raise + aboveGroup + file + ")"}
		}
		if !unlimited(bound) {
			smallest = min(smallest, bound)
			all = append(all, Limit{name, bound, used, raise + file + ")"})
		}
	}
	if innermost.Bytes < smallest && !unlimited(innermost.Bytes) && innermost.Name != "" {
		all = append(all, innermost)
	}
	return all
}

// stats returns the numbers of a group's memory.stat, the first of each name. Two of them have a
// sum: a number of more than 63 bits isn't a kernel's.
func (t teller) stats(directory string) map[string]uint64 {
	stats := map[string]uint64{}
	for line := range strings.Lines(t.text(path.Join(directory, "memory.stat"))) {
		words := strings.Fields(line)
		if len(words) != 2 {
			continue
		}
		number, err := strconv.ParseUint(words[1], 10, 63)
		if _, again := stats[words[0]]; err == nil && !again {
			stats[words[0]] = number
		}
	}
	return stats
}

// unreclaimable returns the use of a group without the bytes that the kernel reclaims before it
// refuses memory to the group. These are the files that it caches, and the parts of huge pages that
// the processes have freed: the kernel counts such a page as a whole until it splits it. The lists
// of anonymous pages also have the pages of tmpfs. The number named mapped counts the bytes that
// processes still have in anonymous pages.
func unreclaimable(used uint64, stats map[string]uint64, prefix, mapped string) uint64 {
	used -= min(used, stats[prefix+"active_file"]+stats[prefix+"inactive_file"])
	anonymous, counted := stats[mapped]
	shared, apart := stats[prefix+"shmem"]
	if counted && apart {
		lists := stats[prefix+"active_anon"] + stats[prefix+"inactive_anon"]
		used -= min(used, lists-min(lists, anonymous+shared))
	}
	return used
}

// cgroupMount is a mount point: the directory point shows the group root and the groups below it.
type cgroupMount struct {
	root  string
	point string
}

// cgroupMounts reads /proc/self/mountinfo and skips malformed lines:
//
//	35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory
func cgroupMounts(mountinfo string, of controller) (found []cgroupMount) {
	for line := range strings.SplitSeq(mountinfo, "\n") {
		before, after, separated := strings.Cut(line, " - ")
		where, what := strings.Split(before, " "), strings.Split(after, " ")
		if !separated || len(where) < 6 || len(what) < 3 {
			continue
		}
		m := cgroupMount{root: unescape(where[3]), point: unescape(where[4])}
		shows := what[0] == "cgroup" && slices.Contains(strings.Split(what[2], ","), string(of))
		if of == unified {
			shows = what[0] == "cgroup2"
		}
		if shows && path.IsAbs(m.root) && path.IsAbs(m.point) {
			found = append(found, m)
		}
	}
	return found
}

// unescape reverses the kernel's escapes of paths in mountinfo.
var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace

// cgroupPath reads /proc/self/cgroup: "0::/group" for version 2, "4:memory:/group" for the memory
// controller of version 1. A path may hold colons. It returns "" if the process has no group.
func cgroupPath(text string, of controller) (found string) {
	for line := range strings.SplitSeq(text, "\n") {
		fields := strings.SplitN(line, ":", 3)
		if len(fields) < 3 || !path.IsAbs(fields[2]) || of == unified && fields[0] != "0" {
			continue
		}
		if slices.Contains(strings.Split(fields[1], ","), string(of)) {
			found = fields[2]
		}
	}
	return found
}

// cgroupDirectories lists the directories of a group and its ancestors, the group's own first: one
// list for each mount, the best first. Some directories may not exist: a container may name its
// group as the host does, and show it as the top of the tree. For a mount that the group isn't in,
// the list has only the top of the mount, where a container sees its own group.
func cgroupDirectories(mountinfo, own string, of controller) (all [][]string) {
	p, mounts := cgroupPath(own, of), cgroupMounts(mountinfo, of)
	if p == "" {
		return nil
	}
	// The shortest root shows the most groups above. Among equals the later mount hides the earlier
	// one.
	slices.Reverse(mounts)
	slices.SortStableFunc(mounts, func(a, b cgroupMount) int {
		_, inA := cgroupBelow(p, a.root)
		_, inB := cgroupBelow(p, b.root)
		if inA != inB {
			return map[bool]int{true: -1, false: 1}[inA]
		}
		return cmp.Compare(len(a.root), len(b.root))
	})
	for _, m := range mounts {
		below, _ := cgroupBelow(p, m.root)
		var list []string
		top := path.Clean(m.point)
		for directory := path.Join(top, below); directory != top; directory = path.Dir(directory) {
			list = append(list, directory)
		}
		all = append(all, append(list, top))
	}
	return all
}

// cgroupBelow returns p relative to the group root, "" for the root itself or a path outside.
func cgroupBelow(p, root string) (rest string, within bool) {
	rest, within = strings.CutPrefix(p, strings.TrimSuffix(root, "/"))
	if !within || rest != "" && rest[0] != '/' || slices.Contains(strings.Split(rest, "/"), "..") {
		return "", false
	}
	return rest, true
}
