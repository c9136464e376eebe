package platform

// LimitEvents are events that the kernel counted in one memory cgroup.
type LimitEvents struct {
	// File is the kernel's file with the counts: "/sys/fs/cgroup/memory.events.local".
	File string `json:"file"`
	High uint64 `json:"high"` // times that the group was above memory.high, and was slowed down
	Max  uint64 `json:"max"`  // times that the group reached memory.max
	OOM  uint64 `json:"oom"`  // times that the group was out of memory
	// Stalled is the percentage of the last 10 s in which a task of the group waited for memory
	// (memory.pressure). It is 0 where the kernel doesn't measure it.
	Stalled float64 `json:"stalled,omitempty"`
}

// WatchLimits reports changes of the limits of the process's memory cgroups: of its own group and
// of all groups above that the process sees, in both versions of cgroups. It calls moved once
// before it returns, and then on a goroutine of its own, until stop. limits is as of [Limits], and
// unread has a line for each file that holds neither a number nor "max" any more. The last bound of
// such a file stays in limits. unread has one more line if the use can't be read, for want of file
// descriptors: Used is then as last read, and may be too small. Another look follows each second
// until all can be read. moved may be called without a change.
//
// WatchLimits calls pressed when the kernel has counted events of a group, at most once a second
// for each group. The counts are those since the last call. Only version 2 counts events. pressed
// runs on the same goroutine as moved.
//
// stop ends the watch. It doesn't wait for a call of moved or pressed that is running. A second
// stop changes nothing.
//
// Between changes the watch runs no code and blocks no thread, while all files can be read: inotify
// reports a write to a limit, and a new count. A look at all files each second takes its place, and
// makes no Go allocation, where inotify can't be had, where the files aren't the kernel's own, in a
// bubble of package testing/synctest, and for a limit of version 1 above the groups that the
// process sees. The watch keeps a file descriptor for each file, up to 3 for each group, and one
// more.
//
// A process that moves to another group isn't followed. Limits of other kinds are read again only
// when a limit of a group has changed. WatchLimits fails if no file or mount shows the cgroups of
// the process. The error wraps errors.ErrUnsupported if no cgroup can limit the process's memory:
// the kernel has no cgroups, its memory controller is off, or the system isn't Linux.
func WatchLimits(moved func(limits []Limit, unread []string), pressed func(LimitEvents)) (stop func(), err error) {
	return watchLimits(moved, pressed)
}
