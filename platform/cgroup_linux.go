package platform

import (
	"io/fs"
	"math"
	"path"
	"strconv"
	"strings"
)

// cgroups gives a row for each group of this process that has a limit. Which version a system runs is not asked: where
// both are mounted, the one without the memory controller has no files of these names.
func (t teller) cgroups() []Limit {
	mountinfo, _ := fs.ReadFile(t.files, "proc/self/mountinfo")
	own, _ := fs.ReadFile(t.files, "proc/self/cgroup")
	mounts, groups := cgroupMounts(string(mountinfo)), cgroupPaths(string(own))
	return append(t.unified(groups.unified.directories(mounts.unified)), t.memory1(groups.memory1.directories(mounts.memory1))...)
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

// number reads a file that holds one number. "max" is none.
func (t teller) number(file string) (value uint64, ok bool) {
	text, err := fs.ReadFile(t.files, strings.TrimPrefix(file, "/"))
	if err != nil {
		return 0, false
	}
	value, err = strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	return value, err == nil
}

// stat is the value of one line of memory.stat.
func (t teller) stat(directory, key string, otherwise uint64) uint64 {
	text, _ := fs.ReadFile(t.files, strings.TrimPrefix(path.Join(directory, "memory.stat"), "/"))
	for line := range strings.Lines(string(text)) {
		if found, value, _ := strings.Cut(strings.TrimSpace(line), " "); found == key {
			if number, err := strconv.ParseUint(value, 10, 64); err == nil {
				return number
			}
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
