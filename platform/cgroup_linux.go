package platform

import (
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
)

// controller is who bounds the memory of groups. A system may have both.
type controller string

const (
	unified controller = ""       // version 2
	memory1 controller = "memory" // of version 1
)

// cgroups gives a row for each group of this process that has a limit. Which version a system runs is not asked: where
// both are mounted, the one without the memory controller has no files of these names.
func (t teller) cgroups() []Limit {
	mountinfo, own := t.text("proc/self/mountinfo"), t.text("proc/self/cgroup")
	return append(t.unified(cgroupDirectories(mountinfo, own, unified)), t.memory1(cgroupDirectories(mountinfo, own, memory1))...)
}

// unified reads version 2: every group above has its own bound, and its use includes that of the groups below.
func (t teller) unified(directories []string) (all []Limit) {
	for _, directory := range directories {
		file := path.Join(directory, "memory.max")
		bound, ok := t.number(file)
		if !ok || unlimited(bound) {
			continue
		}
		used, _ := t.number(path.Join(directory, "memory.current"))
		used -= min(used, t.cached(directory, "active_file", "inactive_file"))
		all = append(all, Limit{"cgroup memory.max", bound, used, "docker run --memory, systemd MemoryMax (" + file + ")"})
	}
	return all
}

// memory1 reads version 1. There a group's use counts for the one above only if that says so, and the innermost group
// tells the smallest bound of all those above, also of those that a container does not see.
func (t teller) memory1(directories []string) (all []Limit) {
	const name, raise = "cgroup v1 memory.limit_in_bytes", "docker run --memory, systemd MemoryLimit ("
	smallest := uint64(math.MaxUint64)
	var innermost Limit // bounded by all groups above
	for _, directory := range directories {
		file := path.Join(directory, "memory.limit_in_bytes")
		bound, ok := t.number(file)
		if !ok {
			continue
		}
		if hierarchy, ok := t.number(path.Join(directory, "memory.use_hierarchy")); innermost.Name != "" && ok && hierarchy == 0 {
			break
		}
		used, _ := t.number(path.Join(directory, "memory.usage_in_bytes"))
		used -= min(used, t.cached(directory, "total_active_file", "total_inactive_file"))
		if innermost.Name == "" {
			least := t.stat(directory, "hierarchical_memory_limit", math.MaxUint64)
			innermost = Limit{name, least, used, raise + "of a group above " + file + ")"}
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

// stat is the value of one line of memory.stat.
func (t teller) stat(directory, key string, otherwise uint64) uint64 {
	if words := t.words(path.Join(directory, "memory.stat"), key); len(words) == 1 {
		if number, err := strconv.ParseUint(words[0], 10, 64); err == nil {
			return number
		}
	}
	return otherwise
}

// cached is the memory of files that the kernel drops, or writes back and drops, before it refuses memory to the group.
func (t teller) cached(directory string, keys ...string) (size uint64) {
	for _, key := range keys {
		value := t.stat(directory, key, 0)
		if size+value < size {
			return 0 // no numbers of a kernel
		}
		size += value
	}
	return size
}

// cgroupMount is where a tree of groups, or a part of it, is shown: the group root, as seen from this process, at the
// directory point.
type cgroupMount struct {
	root  string
	point string
}

// cgroupMounts reads /proc/self/mountinfo. Lines that are none are skipped.
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

// unescape undoes what the kernel does to paths in mountinfo.
var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace

// cgroupPath reads /proc/self/cgroup: "0::/group" for version 2, "4:memory:/group" for the memory
// controller of version 1. A path may hold colons. "" is none.
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

// cgroupDirectories lists where the files of a group, and of those above it, would be, the group's own first. Not all need
// exist: a container may name its group as the host does, and show it as the top of the tree. A group outside of all
// that is mounted has the top of what is shown: it stands for what the container was given.
func cgroupDirectories(mountinfo, own string, of controller) (all []string) {
	p, mounts := cgroupPath(own, of), cgroupMounts(mountinfo, of)
	if p == "" || len(mounts) == 0 {
		return nil
	}
	best, below, inside := cgroupMount{}, "", false
	for _, m := range mounts {
		rest, within := cgroupBelow(p, m.root)
		// The shortest root shows the most groups above. Among equals the later mount hides the earlier one.
		if best.point == "" || within && !inside || within == inside && len(m.root) <= len(best.root) {
			best, below, inside = m, rest, within
		}
	}
	top := path.Clean(best.point)
	for directory := path.Join(top, below); directory != top; directory = path.Dir(directory) {
		all = append(all, directory)
	}
	return append(all, top)
}

// cgroupBelow is p as seen from the group root: "" when it is the root itself, or lies outside.
func cgroupBelow(p, root string) (rest string, within bool) {
	rest, within = strings.CutPrefix(p, strings.TrimSuffix(root, "/"))
	if !within || rest != "" && rest[0] != '/' || slices.Contains(strings.Split(rest, "/"), "..") {
		return "", false
	}
	return rest, true
}
