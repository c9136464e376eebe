package step

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// MemoryGroup makes a memory cgroup of either version, with a limit in bytes, below the group of
// this process. The caller removes the directory with [os.Remove] when no process is left in the
// group. If no group can be made, why is the reason.
func MemoryGroup(limit uint64) (directory, why string) {
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", err.Error()
	}
	for line := range strings.Lines(string(own)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		root := "/sys/fs/cgroup/memory"
		switch {
		case len(fields) < 3:
			continue
		case fields[0] == "0":
			root = "/sys/fs/cgroup"
		case fields[1] != "memory":
			continue
		}
		directory, err = os.MkdirTemp(filepath.Join(root, fields[2]), "upfront-")
		if err == nil {
			if err = SetGroupLimit(directory, limit); err == nil {
				return directory, ""
			}
			_ = os.Remove(directory)
		}
		why = err.Error()
	}
	return "", "no memory cgroup can be made: " + why
}

// SetGroupLimit sets the limit of a memory cgroup in bytes. A limit below the group's use is an
// error in version 1. In version 2 the kernel may end processes of the group.
func SetGroupLimit(directory string, limit uint64) error {
	name := "memory.limit_in_bytes"
	if GroupVersion(directory) == 2 {
		name = "memory.max"
	}
	return os.WriteFile(filepath.Join(directory, name), fmt.Append(nil, limit), 0)
}

// GroupVersion returns the version of a memory cgroup, 1 or 2.
func GroupVersion(directory string) int {
	if _, err := os.Stat(filepath.Join(directory, "memory.max")); err == nil {
		return 2
	}
	return 1
}
