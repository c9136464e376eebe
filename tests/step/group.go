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
		root, file := "/sys/fs/cgroup/memory", "memory.limit_in_bytes"
		switch {
		case len(fields) < 3:
			continue
		case fields[0] == "0":
			root, file = "/sys/fs/cgroup", "memory.max"
		case fields[1] != "memory":
			continue
		}
		directory, err = os.MkdirTemp(filepath.Join(root, fields[2]), "upfront-")
		if err == nil {
			if err = os.WriteFile(filepath.Join(directory, file), fmt.Append(nil, limit), 0); err == nil {
				return directory, ""
			}
			_ = os.Remove(directory)
		}
		why = err.Error()
	}
	return "", "no memory cgroup can be made: " + why
}
