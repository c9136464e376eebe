package platform

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	lookPause   = time.Second // between two looks without inotify
	eventsPause = time.Second // between two reports of a group's events
)

func watchLimits(moved func([]Limit, []string), pressed func(LimitEvents)) (stop func(), err error) {
	return system.watchLimits(newAlarm, moved, pressed)
}

// alarm wakes a watch.
type alarm interface {
	// wait returns nil when it is time to look: after a change, or at the time due, if due isn't
	// zero. It returns an error after close.
	wait(due time.Time) error
	close()
}

// limitWatch compares the files of limits with their last contents. Only its goroutine uses it.
type limitWatch struct {
	t       teller
	alarm   alarm
	files   []*limitFile
	buf     [4096]byte
	moved   func([]Limit, []string)
	pressed func(LimitEvents)
}

// fileKind is the kind of contents that a watch reads in a file.
type fileKind uint8

const (
	boundFile  fileKind = iota // a number, or max
	hiddenFile                 // memory.stat of version 1: the limit of all groups above
	eventsFile                 // memory.events
)

// boundState is a watch's knowledge of a file's bound.
type boundState uint8

const (
	unread  boundState = iota // neither a number nor max
	noBound                   // max, or beyond any machine
	bounded
)

type limitFile struct {
	kind  fileKind
	name  string // from the root
	file  fs.File
	state boundState
	value uint64
	fault string // of an unread file

	known string // the last text that was read; "" if there was none

	counts, told [3]uint64 // high, max and oom: now, and at the last report
	next         time.Time // the earliest time of the next report
}

func (t teller) watchLimits(newAlarm func(files []string, ticks bool) alarm, moved func([]Limit, []string),
	pressed func(LimitEvents)) (stop func(), err error) {
	w := &limitWatch{t: t, moved: moved, pressed: pressed}
	ticks := w.find()
	if len(w.files) == 0 {
		return nil, errors.New("platform: watch limits: the process sees no memory cgroup of its own")
	}
	var names []string
	for _, f := range w.files {
		names = append(names, "/"+f.name)
	}
	w.alarm = newAlarm(names, ticks)
	w.look() // after the alarm is set: no change is lost
	for _, f := range w.files {
		f.told = f.counts
	}
	w.report()
	go w.run()
	return w.alarm.close, nil
}

// find opens the files. ticks reports whether one of them changes without a write.
func (w *limitWatch) find() (ticks bool) {
	mountinfo, own := w.t.text("proc/self/mountinfo"), w.t.text("proc/self/cgroup")
	for _, directory := range cgroupDirectories(mountinfo, own, unified) {
		w.add(boundFile, directory, "memory.max")
		w.add(boundFile, directory, "memory.high")
		if !w.add(eventsFile, directory, "memory.events.local") {
			w.add(eventsFile, directory, "memory.events") // before Linux 5.2
		}
	}
	groups := cgroupDirectories(mountinfo, own, memory1)
	for _, directory := range groups {
		w.add(boundFile, directory, "memory.limit_in_bytes")
	}
	for _, limit := range w.t.memory1(groups) {
		if strings.Contains(limit.Raise, aboveGroup) {
			for _, directory := range groups {
				if w.add(hiddenFile, directory, "memory.stat") {
					return true
				}
			}
		}
	}
	return false
}

func (w *limitWatch) add(kind fileKind, directory, name string) bool {
	f := &limitFile{kind: kind, name: strings.TrimPrefix(path.Join(directory, name), "/")}
	if !f.open(w.t.files) {
		return false
	}
	w.files = append(w.files, f)
	return true
}

func (f *limitFile) open(files fs.FS) bool {
	file, err := files.Open(f.name)
	if err != nil {
		f.fault = err.Error()
		return false
	}
	if _, ok := file.(io.ReaderAt); !ok {
		f.fault = "it can't be read twice"
		_ = file.Close() // only read
		return false
	}
	f.file = file
	return true
}

func (w *limitWatch) run() {
	defer func() {
		for _, f := range w.files {
			f.close()
		}
	}()
	for w.alarm.wait(w.due()) == nil {
		if w.look() {
			w.report()
		}
		w.press()
	}
}

func (f *limitFile) close() {
	if f.file != nil {
		_ = f.file.Close() // only read
		f.file = nil
	}
}

// look reads all files, and reports whether a bound has changed. It makes no Go allocation while
// all files can be read.
func (w *limitWatch) look() (changed bool) {
	for _, f := range w.files {
		text, ok := f.read(w.t.files, w.buf[:])
		switch f.kind {
		case eventsFile:
			if ok {
				f.counts = [3]uint64{countIn(text, "high "), countIn(text, "max "), countIn(text, "oom ")}
			}
			continue
		case hiddenFile:
			text = lineIn(text, hierarchical)
		}
		changed = f.compare(text, ok) || changed
	}
	return changed
}

// read returns the contents of the file. A file that is gone is opened again at each look.
func (f *limitFile) read(files fs.FS, buf []byte) (text []byte, ok bool) {
	if f.file == nil && !f.open(files) {
		return nil, false
	}
	n, err := f.file.(io.ReaderAt).ReadAt(buf, 0)
	if err != nil && err != io.EOF { // EOF itself, as io.ReaderAt says; errors.Is would cost more
		f.fault = err.Error()
		f.close()
		return nil, false
	}
	return buf[:n], true
}

// compare stores the bound in the text, and reports whether it has changed.
func (f *limitFile) compare(text []byte, ok bool) (changed bool) {
	state, value := boundIn(text)
	if state == unread {
		if changed = f.state != unread; ok && (changed || f.fault == "") {
			f.fault = fmt.Sprintf("it holds %.40q", text)
		}
		f.state = unread
		return changed
	}
	f.fault = ""
	if changed = state != f.state || value != f.value; changed || f.known == "" {
		f.known = string(text)
		if f.kind == hiddenFile {
			f.known = hierarchical + f.known
		}
	}
	f.state, f.value = state, value
	return changed
}

// boundIn returns the bound in a text, which ends with a newline: without one the text is cut.
func boundIn(text []byte) (state boundState, value uint64) {
	digits, whole := bytes.CutSuffix(text, []byte("\n"))
	if !whole || len(digits) == 0 {
		return unread, 0
	}
	if string(digits) == "max" {
		return noBound, 0
	}
	for _, c := range digits {
		digit := uint64(c - '0')
		if c < '0' || c > '9' || value > (math.MaxUint64-digit)/10 {
			return unread, 0
		}
		value = 10*value + digit
	}
	if unlimited(value) {
		return noBound, 0
	}
	return bounded, value
}

// lineIn returns the rest of the line that begins with the key, with its newline.
func lineIn(text []byte, key string) []byte {
	for len(text) > 0 {
		end := bytes.IndexByte(text, '\n') + 1
		if end == 0 {
			return nil // cut
		}
		if string(text[:min(len(key), end)]) == key {
			return text[len(key):end]
		}
		text = text[end:]
	}
	return nil
}

// countIn returns the number after the key, or 0.
func countIn(text []byte, key string) uint64 {
	_, value := boundIn(lineIn(text, key))
	return value
}

// report passes the limits on.
func (w *limitWatch) report() {
	kept := keptFiles{w.t.files, map[string]string{}}
	var lines []string
	for _, f := range w.files {
		switch {
		case f.kind == eventsFile || f.state != unread:
			continue
		case f.known == "":
			lines = append(lines, fmt.Sprintf("/%s can't be read (%s): no limit of it is known", f.name, f.fault))
		default:
			kept.texts[f.name] = f.known
			lines = append(lines, fmt.Sprintf("/%s can't be read (%s): its last bound stays, %s", f.name, f.fault,
				strings.TrimSpace(f.known)))
		}
	}
	t := w.t
	t.files = kept
	w.moved(t.limits(), lines)
}

// keptFiles are the files of a system, but for those that can't be read any more.
type keptFiles struct {
	fs.FS
	texts map[string]string // by name, as last read
}

// ReadFile is for fs.ReadFile.
func (k keptFiles) ReadFile(name string) ([]byte, error) {
	if text, ok := k.texts[name]; ok {
		return []byte(text), nil
	}
	return fs.ReadFile(k.FS, name)
}

// due returns the time of the next report of events, zero if there are none to report.
func (w *limitWatch) due() (due time.Time) {
	for _, f := range w.files {
		if f.counts != f.told && (due.IsZero() || f.next.Before(due)) {
			due = f.next
		}
	}
	return due
}

// press reports events that are due.
func (w *limitWatch) press() {
	for _, f := range w.files {
		if f.counts == f.told {
			continue
		}
		now := time.Now()
		if now.Before(f.next) {
			continue
		}
		var more [3]uint64
		for i := range more {
			more[i] = f.counts[i] - min(f.counts[i], f.told[i]) // a new group's counts begin at 0
		}
		f.told, f.next = f.counts, now.Add(eventsPause)
		if more == [3]uint64{} {
			continue
		}
		w.pressed(LimitEvents{File: "/" + f.name, High: more[0], Max: more[1], OOM: more[2],
			Stalled: w.t.stalled(path.Join(path.Dir(f.name), "memory.pressure"))})
	}
}

// stalled reads the share of the last 10 s in a file of pressure stalls:
//
//	some avg10=1.50 avg60=0.20 avg300=0.00 total=12345
func (t teller) stalled(file string) (share float64) {
	if words := t.words(file, "some"); len(words) != 0 {
		text, _ := strings.CutPrefix(words[0], "avg10=")
		if of, err := strconv.ParseFloat(text, 64); err == nil && of >= 0 && of <= 100 {
			return of
		}
	}
	return 0
}

// newAlarm returns inotify if it reports changes of all files, and else a clock.
func newAlarm(files []string, ticks bool) alarm {
	if !ticks && !inBubble() && !slices.ContainsFunc(files, isForeign) {
		if a, err := newInotify(files); err == nil {
			return a
		}
	}
	return newClock()
}

// isForeign reports whether the file isn't the kernel's: writes to a cgroup that another program
// shows don't reach inotify.
func isForeign(file string) bool {
	var s unix.Statfs_t
	err := unix.Statfs(file, &s)
	return err != nil || int64(s.Type) != unix.CGROUP_SUPER_MAGIC && int64(s.Type) != unix.CGROUP2_SUPER_MAGIC
}

// inBubble reports whether the goroutine is in a bubble of package testing/synctest: its clock
// isn't the system's. A goroutine that waits for a file would stop the bubble's clock.
func inBubble() bool {
	var now unix.Timespec
	err := unix.ClockGettime(unix.CLOCK_REALTIME, &now)
	return err == nil && time.Since(time.Unix(now.Unix())).Abs() > time.Hour
}

// inotify is an alarm for writes to files.
type inotify struct {
	file *os.File
	buf  [512]byte // a few events; more cause another look
}

func newInotify(files []string) (alarm, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, err
	}
	a := &inotify{file: os.NewFile(uintptr(fd), "inotify")}
	for _, file := range files {
		if _, err := unix.InotifyAddWatch(fd, file, unix.IN_MODIFY); err != nil {
			return nil, errors.Join(err, a.file.Close())
		}
	}
	if err := a.file.SetReadDeadline(time.Time{}); err != nil { // the runtime can't wait for it
		return nil, errors.Join(err, a.file.Close())
	}
	return a, nil
}

func (a *inotify) wait(due time.Time) error {
	if err := a.file.SetReadDeadline(due); err != nil {
		return err
	}
	if _, err := a.file.Read(a.buf[:]); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	return nil
}

func (a *inotify) close() { _ = a.file.Close() } // only read

// clock is an alarm each second.
type clock struct {
	timer *time.Timer
	ended chan struct{}
	once  sync.Once
}

func newClock() alarm { return &clock{timer: time.NewTimer(lookPause), ended: make(chan struct{})} }

func (c *clock) wait(due time.Time) error {
	pause := lookPause
	if !due.IsZero() {
		pause = min(pause, time.Until(due))
	}
	c.timer.Reset(pause)
	select {
	case <-c.ended:
		c.timer.Stop()
		return os.ErrClosed
	case <-c.timer.C:
		return nil
	}
}

func (c *clock) close() { c.once.Do(func() { close(c.ended) }) }
