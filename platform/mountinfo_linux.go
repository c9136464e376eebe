package platform

import (
	"path"
	"slices"
	"strings"
)

// cgroupMount is where a tree of groups, or a part of it, is shown: the group root, as seen from this process, at the
// directory point.
type cgroupMount struct {
	root  string
	point string
}

// cgroupPath is a group as /proc/self/cgroup names it. The zero value is none.
type cgroupPath string

// byVersion holds what there is for version 2 and for the memory controller of version 1. A system may have both.
type byVersion[T any] struct {
	unified T
	memory1 T
}

// cgroupMounts reads /proc/self/mountinfo. Lines that are none are skipped.
//
//	35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory
func cgroupMounts(mountinfo string) (found byVersion[[]cgroupMount]) {
	for line := range strings.SplitSeq(mountinfo, "\n") {
		before, after, separated := strings.Cut(line, " - ")
		where, what := strings.Split(before, " "), strings.Split(after, " ")
		if !separated || len(where) < 6 || len(what) < 3 {
			continue
		}
		m := cgroupMount{root: unescape(where[3]), point: unescape(where[4])}
		switch {
		case !path.IsAbs(m.root) || !path.IsAbs(m.point):
		case what[0] == "cgroup2":
			found.unified = append(found.unified, m)
		case what[0] == "cgroup" && slices.Contains(strings.Split(what[2], ","), "memory"):
			found.memory1 = append(found.memory1, m)
		}
	}
	return found
}

// unescape undoes what the kernel does to blanks and backslashes in mountinfo: \040.
func unescape(text string) string {
	var plain strings.Builder
	for i := 0; i < len(text); i++ {
		if rest := text[i:]; len(rest) >= 4 && rest[0] == '\\' && isOctal(rest[1], '3') && isOctal(rest[2], '7') && isOctal(rest[3], '7') {
			plain.WriteByte((rest[1]-'0')<<6 | (rest[2]-'0')<<3 | (rest[3] - '0'))
			i += 3
			continue
		}
		plain.WriteByte(text[i])
	}
	return plain.String()
}

func isOctal(digit, most byte) bool { return '0' <= digit && digit <= most }

// cgroupPaths reads /proc/self/cgroup: "0::/group" for version 2, "4:memory:/group" for the memory controller of
// version 1. A path may hold colons.
func cgroupPaths(text string) (found byVersion[cgroupPath]) {
	for line := range strings.SplitSeq(text, "\n") {
		fields := strings.SplitN(line, ":", 3)
		if len(fields) < 3 || !path.IsAbs(fields[2]) {
			continue
		}
		switch p := cgroupPath(fields[2]); {
		case fields[0] == "0" && fields[1] == "":
			found.unified = p
		case slices.Contains(strings.Split(fields[1], ","), "memory"):
			found.memory1 = p
		}
	}
	return found
}

// directories lists where the files of a group, and of those above it, would be, the group's own first. Not all need
// exist: a container may name its group as the host does, and show it as the top of the tree. A group outside of all
// that is mounted has the top of what is shown: it stands for what the container was given.
func (p cgroupPath) directories(mounts []cgroupMount) (all []string) {
	if p == "" || len(mounts) == 0 {
		return nil
	}
	best, below, inside := cgroupMount{}, "", false
	for _, m := range mounts {
		rest, within := p.below(m.root)
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

// below is p as seen from the group root: "" when it is the root itself, or lies outside.
func (p cgroupPath) below(root string) (rest string, within bool) {
	rest, within = strings.CutPrefix(string(p), strings.TrimSuffix(root, "/"))
	if !within || rest != "" && rest[0] != '/' || slices.Contains(strings.Split(rest, "/"), "..") {
		return "", false
	}
	return rest, true
}
