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
	kept    keptFiles
	again   time.Time // the time of another look, because a file couldn't be read; else zero
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
	ticks, err := w.find()
	if err != nil {
		w.close()
		return nil, fmt.Errorf("platform: watch limits: %w", err)
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

// find opens the files. ticks reports whether one of them changes without a write. The error wraps
// errors.ErrUnsupported if the system has no group that could limit the process.
func (w *limitWatch) find() (ticks bool, err error) {
	w.kept = newKeptFiles(w.t.files)
	for _, name := range []string{mountsFile, groupsFile} {
		if err := w.kept.keep(name); err != nil && (name == mountsFile || !errors.Is(err, fs.ErrNotExist)) {
			return false, err
		}
	}
	mountinfo, own := w.kept.texts[mountsFile], w.kept.texts[groupsFile]
	second, first := w.t.groupDirectories(mountinfo, own, unified), w.t.groupDirectories(mountinfo, own, memory1)
	isMember := cgroupPath(own, unified) != "" || cgroupPath(own, memory1) != ""
	if isMember && len(second)+len(first) == 0 {
		return false, errors.New("no mount shows the process's cgroup")
	}
	for _, directory := range second {
		w.add(boundFile, directory, "memory.max")
		w.add(boundFile, directory, "memory.high")
		if !w.add(eventsFile, directory, "memory.events.local") {
			w.add(eventsFile, directory, "memory.events") // before Linux 5.2
		}
	}
	for _, directory := range first {
		w.add(boundFile, directory, "memory.limit_in_bytes")
	}
	if len(w.files) == 0 {
		return false, fmt.Errorf("the process sees no memory cgroup of its own: %w", errors.ErrUnsupported)
	}
	for _, limit := range w.t.memory1(first) {
		if strings.Contains(limit.Raise, aboveGroup) {
			for _, directory := range first {
				if w.add(hiddenFile, directory, "memory.stat") {
					return true, nil
				}
			}
		}
	}
	return false, nil
}

// add opens a file of the group, if it has one. A file that exists and can't be opened now is
// opened by a later look.
func (w *limitWatch) add(kind fileKind, directory, name string) bool {
	f := &limitFile{kind: kind, name: strings.TrimPrefix(path.Join(directory, name), "/")}
	if err := f.open(w.t.files); err != nil && !isShortage(err) {
		return false
	}
	w.files = append(w.files, f)
	return true
}

// isShortage reports whether a file can't be opened because the process or the system lacks file
// descriptors or memory.
func isShortage(err error) bool {
	return errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) || errors.Is(err, unix.ENOMEM)
}

func (f *limitFile) open(files fs.FS) error {
	file, err := files.Open(f.name)
	if err != nil {
		f.fault = err.Error()
		return err
	}
	if _, ok := file.(io.ReaderAt); !ok {
		f.fault = "it can't be read twice"
		_ = file.Close() // only read
		return errors.ErrUnsupported
	}
	f.file = file
	return nil
}

func (w *limitWatch) run() {
	defer w.close()
	for w.alarm.wait(w.due()) == nil {
		late := len(w.kept.faults) != 0 && !time.Now().Before(w.again)
		if w.look() || late {
			w.report()
		}
		w.press()
	}
}

func (w *limitWatch) close() {
	for _, f := range w.files {
		f.close()
	}
}

func (f *limitFile) close() {
	if f.file != nil {
		_ = f.file.Close() // only read
		f.file = nil
	}
}

// look reads all files, and reports whether a bound has changed. It makes no Go allocation while
// all files can be read. Another look follows after a second if one can't.
func (w *limitWatch) look() (changed bool) {
	for _, f := range w.files {
		text, ok := f.read(w.t.files, w.buf[:])
		switch f.kind {
		case eventsFile:
			if ok {
				f.fault = ""
				f.counts = [3]uint64{countIn(text, "high "), countIn(text, "max "), countIn(text, "oom ")}
			}
			continue
		case hiddenFile:
			text = lineIn(text, hierarchical)
		}
		changed = f.compare(text, ok) || changed
	}
	w.lookAgain()
	return changed
}

// lookAgain sets the time of another look, if a file couldn't be read.
func (w *limitWatch) lookAgain() {
	isFaulty := func(f *limitFile) bool { return f.fault != "" }
	if len(w.kept.faults) == 0 && !slices.ContainsFunc(w.files, isFaulty) {
		w.again = time.Time{}
	} else if now := time.Now(); !now.Before(w.again) {
		w.again = now.Add(lookPause)
	}
}

// read returns the contents of the file. A file that is gone is opened again at each look.
func (f *limitFile) read(files fs.FS, buf []byte) (text []byte, ok bool) {
	if f.file == nil && f.open(files) != nil {
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

// report passes the limits on. Their bounds are those of the last look: there may be no file
// descriptor to open a file again.
func (w *limitWatch) report() {
	k := &w.kept
	k.faults = k.faults[:0]
	var lines []string
	for _, f := range w.files {
		if f.kind == eventsFile {
			continue
		}
		texts := k.texts
		if f.kind == hiddenFile {
			texts = k.heads
		}
		texts[f.name] = f.known
		switch {
		case f.state != unread:
		case f.known == "":
			lines = append(lines, fmt.Sprintf("/%s can't be read (%s): no limit of it is known", f.name, f.fault))
		default:
			lines = append(lines, fmt.Sprintf("/%s can't be read (%s): its last bound stays, %s", f.name, f.fault,
				strings.TrimSpace(f.known)))
		}
	}
	t := w.t
	t.files = k
	limits := t.limits()
	if len(k.faults) != 0 {
		lines = append(lines, fmt.Sprintf("the use of memory can't be read (%s): the last one stays", k.faults[0]))
	}
	w.lookAgain()
	w.moved(limits, lines)
}

const (
	mountsFile = "proc/self/mountinfo"
	groupsFile = "proc/self/cgroup"
)

// keptFiles are the files of a system. A file that can't be read any more keeps its last text.
type keptFiles struct {
	fs.FS
	// Texts by name.
	texts map[string]string // in place of the file's
	heads map[string]string // before the file's
	last  map[string]string // as last read
	// faults are errors of files that can be read at other times.
	faults []string
}

func newKeptFiles(files fs.FS) keptFiles {
	return keptFiles{FS: files, texts: map[string]string{}, heads: map[string]string{}, last: map[string]string{}}
}

// keep reads a file for all time.
func (k *keptFiles) keep(name string) error {
	text, err := fs.ReadFile(k.FS, name)
	k.texts[name] = string(text)
	return err
}

// ReadFile is for fs.ReadFile.
func (k *keptFiles) ReadFile(name string) ([]byte, error) {
	if text, ok := k.texts[name]; ok {
		return []byte(text), nil
	}
	text, err := fs.ReadFile(k.FS, name)
	last, known := k.last[name]
	switch {
	case err == nil:
		k.last[name] = string(text)
	case known || isShortage(err):
		k.faults = append(k.faults, err.Error())
		text, err = []byte(last), nil
	}
	if head, ok := k.heads[name]; ok {
		return append([]byte(head), text...), nil
	}
	return text, err
}

// due returns the time of the next look without a change, zero if there is none: for a report of
// events, or because a file couldn't be read.
func (w *limitWatch) due() (due time.Time) {
	due = w.again
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
