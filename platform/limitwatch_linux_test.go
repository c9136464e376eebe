package platform

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// moving is a root directory whose files change while they are open.
type moving struct {
	mutex sync.Mutex
	files map[string]string
	full  bool // no file can be opened
}

// noDescriptor is the text of a file that can't be opened.
const noDescriptor = "no file descriptor"

func (m *moving) setFull(full bool) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.full = full
}

func (m *moving) isFull() bool {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.full
}

// set changes files: name, text, name, text. The text "gone" removes a file.
func (m *moving) set(pairs ...string) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	for i := 0; i < len(pairs); i += 2 {
		name := strings.TrimPrefix(pairs[i], "/")
		if m.files[name] = pairs[i+1]; pairs[i+1] == "gone" {
			delete(m.files, name)
		}
	}
}

func (m *moving) text(name string) (text string, ok bool) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	text, ok = m.files[name]
	return text, ok
}

func (m *moving) Open(name string) (fs.File, error) {
	switch text, ok := m.text(name); {
	case !ok:
		return nil, &fs.PathError{Op: "open", Path: name, Err: unix.ENOENT}
	case m.isFull() || text == noDescriptor:
		return nil, &fs.PathError{Op: "open", Path: name, Err: unix.EMFILE}
	}
	return &movingFile{of: m, name: name}, nil
}

type movingFile struct {
	of     *moving
	name   string
	offset int64
}

func (f *movingFile) ReadAt(p []byte, offset int64) (int, error) {
	text, ok := f.of.text(f.name)
	if !ok { // as the kernel does for a file of a group that is gone
		return 0, unix.ENODEV
	}
	n := copy(p, text[min(int(offset), len(text)):])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *movingFile) Read(p []byte) (int, error) {
	n, err := f.ReadAt(p, f.offset)
	f.offset += int64(n)
	return n, err
}

func (f *movingFile) Stat() (fs.FileInfo, error) { return nil, errors.ErrUnsupported }
func (f *movingFile) Close() error               { return nil }

// watched is a watch of a moving tree in a bubble, with all that it has reported.
type watched struct {
	*moving
	stop   func()
	mutex  sync.Mutex
	moves  []string
	events []LimitEvents
	names  []string // files of the alarm
	ticks  bool
}

// watchTree watches the tree with the alarm of a bubble, a clock.
func watchTree(t *testing.T, mountinfo, cgroup string, files ...string) (*watched, error) {
	w := &watched{moving: &moving{files: map[string]string{}}}
	w.set("proc/self/mountinfo", mountinfo, "proc/self/cgroup", cgroup)
	w.set(files...)
	of := teller{w.moving, func(int) (uint64, bool) { return math.MaxUint64, true },
		func() (uint64, bool) { return 0, false }}
	stop, err := of.watchLimits(func(files []string, ticks bool) alarm {
		w.names, w.ticks = files, ticks
		return newAlarm(files, ticks)
	}, func(limits []Limit, unread []string) {
		var out strings.Builder
		for _, l := range limits {
			fmt.Fprintf(&out, "%s %d/%d; ", strings.TrimPrefix(l.Name, "cgroup "), l.Used, l.Bytes)
		}
		w.mutex.Lock()
		defer w.mutex.Unlock()
		w.moves = append(w.moves, out.String()+strings.Join(unread, "; "))
	}, func(e LimitEvents) {
		w.mutex.Lock()
		defer w.mutex.Unlock()
		w.events = append(w.events, e)
	})
	if err == nil {
		w.stop = stop
		t.Cleanup(stop)
	}
	return w, err
}

// after changes files, waits, and returns the moves since.
func (w *watched) after(wait time.Duration, pairs ...string) []string {
	w.mutex.Lock()
	w.moves, w.events = nil, nil
	w.mutex.Unlock()
	w.set(pairs...)
	time.Sleep(wait)
	synctest.Wait()
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.moves
}

func TestLimitsMove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const cg = "/sys/fs/cgroup"
		const own, above = cg + "/a/b", cg + "/a"
		w, err := watchTree(t, mounted2, "0::/a/b\n", own+"/memory.max", "512\n", own+"/memory.high", "max\n",
			own+"/memory.current", "100\n", above+"/memory.max", "max\n")
		require.NoError(t, err)
		assert.Equal(t, []string{own + "/memory.max", own + "/memory.high", above + "/memory.max"}, w.names)
		assert.False(t, w.ticks)
		assert.Equal(t, []string{"memory.max 100/512; "}, w.moves, "before it returns")
		const second = lookPause
		assert.Empty(t, w.after(5*second), "nothing has changed")
		assert.Empty(t, w.after(second, own+"/memory.current", "200\n"), "the use isn't a bound")
		for _, c := range []struct{ file, text, want string }{
			{own + "/memory.max", "256\n", "memory.max 200/256; "},
			{own + "/memory.max", "1024\n", "memory.max 200/1024; "},
			{own + "/memory.high", "900\n", "memory.high 200/900; memory.max 200/1024; "},
			{above + "/memory.max", "300\n", "memory.max 0/300; memory.high 200/900; memory.max 200/1024; "},
			{own + "/memory.max", "max\n", "memory.max 0/300; memory.high 200/900; "},
			{own + "/memory.max", "0\n", "memory.max 200/0; memory.max 0/300; memory.high 200/900; "},
			{own + "/memory.max", "99999999999999999\n",
				"memory.max 0/300; memory.high 200/900; memory.max 200/99999999999999999; "},
			{own + "/memory.max", "9223372036854771712\n", "memory.max 0/300; memory.high 200/900; "},
			{own + "/memory.max", "1024\n", "memory.max 0/300; memory.high 200/900; memory.max 200/1024; "},
			{above + "/memory.max", "max\n", "memory.high 200/900; memory.max 200/1024; "},
		} {
			assert.Equal(t, []string{c.want}, w.after(second, c.file, c.text), "%s", c)
		}
		const all = "memory.high 200/900; memory.max 200/1024; "
		for _, c := range []struct{ text, fault string }{
			{"gone", "open sys/fs/cgroup/a/b/memory.max: no such file or directory"}, {"51", `it holds "51"`},
			{"99999999999999999999\n", `it holds "99999999999999999999\n"`}, {"-5\n", `it holds "-5\n"`},
			{"", `it holds ""`}, {"\n", `it holds "\n"`}, {"1e3\n", `it holds "1e3\n"`}, {"maximum\n", `it holds "maximum\n"`},
			{"7\n8\n", `it holds "7\n8\n"`},
		} {
			got := w.after(second, own+"/memory.max", c.text)
			if assert.Len(t, got, 1, c.text) && c.text != "gone" {
				assert.Equal(t, all+own+"/memory.max can't be read ("+c.fault+"): its last bound stays, 1024", got[0])
			} else {
				assert.Contains(t, got[0], all+own+"/memory.max can't be read (")
			}
			assert.Empty(t, w.after(3*second), "once")
			assert.Equal(t, []string{all}, w.after(second, own+"/memory.max", "1024\n"), "it is back")
		}
		w.stop()
		w.stop()
		assert.Empty(t, w.after(5*second, own+"/memory.max", "1\n"), "after stop")
	})
}

func TestWatchOfNoGroup(t *testing.T) {
	const none = "the process sees no memory cgroup of its own: unsupported operation"
	const max = "/sys/fs/cgroup/a/memory.max"
	for name, c := range map[string]struct {
		files []string
		want  string
	}{
		"no /proc": {[]string{"/proc/self/mountinfo", "gone", "/proc/self/cgroup", "gone"},
			"open proc/self/mountinfo: no such file or directory"},
		"hidden groups": {[]string{"/proc/self/cgroup", noDescriptor}, "open proc/self/cgroup: too many open files"},
		"no mount":      {[]string{"/proc/self/mountinfo", ""}, "no mount shows the process's cgroup"},
		"no cgroups":    {[]string{"/proc/self/cgroup", "gone"}, none},
		"no group":      {[]string{"/proc/self/cgroup", "4:cpu:/a\n"}, none},
		"no limits":     {[]string{max, "gone"}, none},
	} {
		_, err := watchTree(t, mounted2, "0::/a\n", append([]string{max, "512\n"}, c.files...)...)
		require.EqualError(t, err, "platform: watch limits: "+c.want, name)
		assert.Equal(t, c.want == none, errors.Is(err, errors.ErrUnsupported), name)
	}
	synctest.Test(t, func(t *testing.T) {
		w, err := watchTree(t, mounted2, "0::/a\n", "/sys/fs/cgroup/a/memory.max", "5x\n")
		require.NoError(t, err)
		assert.Equal(t, []string{`/sys/fs/cgroup/a/memory.max can't be read (it holds "5x\n"): no limit of it is known`},
			w.moves, "at the start")
	})
}

// TestWatchBesideAHiddenMount: a later mount that the process can't look into hides no limit.
func TestWatchBesideAHiddenMount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const own = "/sys/fs/cgroup/a"
		w, err := watchTree(t, mounted2+"9 1 0:3 / /hidden rw - cgroup2 none rw\n", "0::/a\n",
			own+"/memory.max", "512\n")
		require.NoError(t, err)
		assert.Equal(t, []string{"memory.max 0/512; "}, w.moves)
		assert.Equal(t, []string{own + "/memory.max"}, w.names)
	})
}

// TestLimitsMoveWithoutDescriptors: a process without a free file descriptor still sees each bound.
// The use stays as last read, and is read again when the process has descriptors.
func TestLimitsMoveWithoutDescriptors(t *testing.T) {
	const own, above, cg1 = "/sys/fs/cgroup/a/b", "/sys/fs/cgroup/a", "/sys/fs/cgroup/memory"
	const lost = "the use of memory can't be read (open %s: too many open files): the last one stays"
	synctest.Test(t, func(t *testing.T) {
		w, err := watchTree(t, mounted2, "0::/a/b\n", own+"/memory.max", "512\n", own+"/memory.high", "max\n",
			own+"/memory.current", "100\n", above+"/memory.max", "max\n", above+"/memory.current", "300\n",
			"/proc/meminfo", "MemTotal: 1 kB\nMemAvailable: 1 kB\n")
		require.NoError(t, err)
		const machine = "physical memory 0/1024; "
		assert.Equal(t, []string{"memory.max 100/512; " + machine}, w.moves)
		w.setFull(true)
		assert.Empty(t, w.after(3*lookPause, own+"/memory.current", "200\n"), "no bound has moved")
		current := fmt.Sprintf(lost, "sys/fs/cgroup/a/b/memory.current")
		all := "memory.max 100/256; " + machine + current
		assert.Equal(t, []string{all, all, all}, w.after(3*lookPause, own+"/memory.max", "256\n"), "and again")
		all = "memory.max 0/250; memory.max 100/400; " + machine + current
		assert.Equal(t, all, w.after(lookPause, own+"/memory.max", "400\n", above+"/memory.max", "250\n")[0])
		w.setFull(false)
		assert.Equal(t, []string{"memory.max 300/250; memory.max 200/400; " + machine}, w.after(3*lookPause), "once")
	})
	synctest.Test(t, func(t *testing.T) {
		w, err := watchTree(t, mounted2, "0::/a/b\n", own+"/memory.max", "512\n", above+"/memory.max", noDescriptor)
		require.NoError(t, err)
		assert.Equal(t, []string{"memory.max 0/512; /sys/fs/cgroup/a/memory.max can't be read (open " +
			"sys/fs/cgroup/a/memory.max: too many open files): no limit of it is known"}, w.moves)
		assert.Equal(t, []string{"memory.max 0/300; memory.max 0/512; "},
			w.after(lookPause, above+"/memory.max", "300\n"))
	})
	synctest.Test(t, func(t *testing.T) {
		const limit, stat = cg1 + "/memory.limit_in_bytes", cg1 + "/memory.stat"
		w, err := watchTree(t, mounted1, "4:memory:/\n", limit, "1000\n", cg1+"/memory.usage_in_bytes", "90\n",
			stat, "hierarchical_memory_limit 256\ntotal_active_file 40\n")
		require.NoError(t, err)
		assert.Equal(t, []string{name1 + " 50/256; " + name1 + " 50/1000; "}, w.moves)
		w.setFull(true)
		usage := fmt.Sprintf(lost, "sys/fs/cgroup/memory/memory.usage_in_bytes")
		assert.Equal(t, name1+" 50/200; "+name1+" 50/1000; "+usage,
			w.after(lookPause, stat, "hierarchical_memory_limit 200\ntotal_active_file 60\n")[0])
	})
}

// TestLookAgain: while a file can't be read, the watch needs no alarm for another look.
func TestLookAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const file = "/sys/fs/cgroup/a/memory.max"
		m := &moving{files: map[string]string{}}
		m.set("proc/self/mountinfo", mounted2, "proc/self/cgroup", "0::/a\n", file, "512\n",
			"/sys/fs/cgroup/a/memory.current", "9\n")
		rings := &bell{rung: make(chan struct{}), ended: make(chan struct{})}
		of := teller{m, func(int) (uint64, bool) { return 0, false }, func() (uint64, bool) { return 0, false }}
		var mutex sync.Mutex
		var all []Limit
		calls := 0
		stop, err := of.watchLimits(func([]string, bool) alarm { return rings }, func(limits []Limit, _ []string) {
			mutex.Lock()
			defer mutex.Unlock()
			all = limits
			calls++
		}, func(LimitEvents) {})
		require.NoError(t, err)
		after := func() (uint64, uint64, int) {
			time.Sleep(10 * lookPause)
			synctest.Wait()
			mutex.Lock()
			defer mutex.Unlock()
			return all[0].Bytes, all[0].Used, calls
		}
		expect := func(bytes, used uint64, least, most int) {
			t.Helper()
			b, u, n := after()
			assert.Equal(t, [...]uint64{bytes, used}, [...]uint64{b, u})
			assert.True(t, least <= n && n <= most, "%d calls", n)
		}
		expect(512, 9, 1, 1)
		m.setFull(true)
		m.set(file, "256\n", "/sys/fs/cgroup/a/memory.current", "99\n")
		rings.rung <- struct{}{}
		expect(256, 9, 10, 12)
		m.setFull(false)
		time.Sleep(2 * lookPause)
		synctest.Wait()
		mutex.Lock()
		n := calls
		mutex.Unlock()
		expect(256, 99, n, n)
		m.set(file, "gone")
		rings.rung <- struct{}{}
		expect(256, 99, n+1, n+1)
		m.set(file, "300\n")
		expect(300, 99, n+2, n+2)
		stop()
	})
}

func TestLimitsOfVersion1Move(t *testing.T) {
	const limit, usage, stat, cg = "/memory.limit_in_bytes", "/memory.usage_in_bytes", "/memory.stat",
		"/sys/fs/cgroup/memory"
	const b = cg + "/a/b"
	synctest.Test(t, func(t *testing.T) {
		w, err := watchTree(t, mounted1, "4:memory:/a/b\n", b+limit, "512\n", b+usage, "9\n", b+"/memory.use_hierarchy",
			"1\n", cg+"/a"+limit, none1, cg+"/a/memory.use_hierarchy", "1\n", cg+limit, none1,
			b+stat, "hierarchical_memory_limit 512\n")
		require.NoError(t, err)
		assert.Equal(t, []string{b + limit, cg + "/a" + limit, cg + limit}, w.names)
		assert.False(t, w.ticks)
		const name = "v1 memory.limit_in_bytes"
		assert.Equal(t, []string{name + " 9/256; "},
			w.after(lookPause, b+limit, "256\n", b+stat, "hierarchical_memory_limit 256\n"))
		assert.Equal(t, []string{name + " 0/200; " + name + " 9/256; "}, w.after(lookPause, cg+"/a"+limit, "200\n"))
	})
	synctest.Test(t, func(t *testing.T) {
		w, err := watchTree(t, "1 2 0:3 /a/b /cg rw - cgroup none rw,memory\n", "4:memory:/a/b\n",
			"/cg"+limit, "1000\n", "/cg"+stat, "cache 5\nhierarchical_memory_limit 256\n")
		require.NoError(t, err)
		assert.True(t, w.ticks, "the group above can't be seen")
		assert.Equal(t, []string{name1 + " 0/300; " + name1 + " 0/1000; "},
			w.after(lookPause, "/cg"+stat, "cache 5\nhierarchical_memory_limit 300\nrss 1\n"))
		assert.Equal(t, []string{name1 + " 0/300; " + name1 +
			` 0/1000; /cg/memory.stat can't be read (it holds ""): its last bound stays, hierarchical_memory_limit 300`},
			w.after(lookPause, "/cg"+stat, "cache 5\nhierarchical_memory_limit 30"))
	})
}

const name1 = "v1 memory.limit_in_bytes"

func TestEventsOfGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const own, above = "/sys/fs/cgroup/a/b", "/sys/fs/cgroup/a"
		const local, old = own + "/memory.events.local", above + "/memory.events"
		w, err := watchTree(t, mounted2, "0::/a/b\n", own+"/memory.max", "512\n", own+"/memory.events", "high 7\n",
			local, "low 9\nhigh 5\nmax 6\noom 7\noom_kill 8\n", old, "low 0\nhigh 0\nmax 0\noom 0\n")
		require.NoError(t, err)
		assert.Equal(t, []string{own + "/memory.max", local, old}, w.names)
		assert.Empty(t, w.after(3*lookPause))
		assert.Empty(t, w.events, "earlier events")
		assert.Empty(t, w.after(lookPause, local, "low 9\nhigh 15\nmax 8\noom 8\noom_kill 8\n"), "no bound has moved")
		assert.Equal(t, []LimitEvents{{File: local, High: 10, Max: 2, OOM: 1}}, w.events, "without memory.pressure")
		w.after(lookPause, local, "high 16\nmax 8\noom 8\n", old, "high 1\nmax 0\noom 0\n", own+"/memory.pressure",
			"some avg10=12.50 avg60=0 avg300=0 total=5\nfull avg10=0.00 avg60=0 avg300=0 total=1\n",
			above+"/memory.pressure", "some avg10=NaN\nfull avg10=0.00\n")
		assert.Equal(t, []LimitEvents{{File: local, High: 1, Stalled: 12.5}, {File: old, High: 1}}, w.events)
		w.after(lookPause, local, "gone")
		assert.Empty(t, w.events)
		w.after(lookPause, local, "high 3\nmax 8\noom 8\n")
		assert.Empty(t, w.events, "a new group")
		w.after(lookPause, local, "high 4\nmax 8\noom 8\n")
		assert.Equal(t, []LimitEvents{{File: local, High: 1, Stalled: 12.5}}, w.events)
	})
}

// TestEventsOnceASecond: an alarm for each event doesn't make a report for each.
func TestEventsOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const file = "/sys/fs/cgroup/a/memory.events"
		m := &moving{files: map[string]string{}}
		m.set("proc/self/mountinfo", mounted2, "proc/self/cgroup", "0::/a\n", file, "high 0\n")
		var all []uint64
		rings := &bell{rung: make(chan struct{}), ended: make(chan struct{})}
		of := teller{m, func(int) (uint64, bool) { return 0, false }, func() (uint64, bool) { return 0, false }}
		stop, err := of.watchLimits(func([]string, bool) alarm { return rings }, func([]Limit, []string) {},
			func(e LimitEvents) { all = append(all, e.High) })
		require.NoError(t, err)
		for i := range 100 {
			m.set(file, fmt.Sprintf("high %d\n", i+1))
			rings.rung <- struct{}{}
			time.Sleep(25 * time.Millisecond)
		}
		time.Sleep(eventsPause)
		synctest.Wait()
		sum := uint64(0)
		for _, n := range all {
			sum += n
		}
		assert.Len(t, all, 4, "in 2.5 s")
		assert.EqualValues(t, 100, sum, "none is lost, and the last ones need no further alarm")
		stop()
	})
}

// bell is an alarm that a test rings.
type bell struct{ rung, ended chan struct{} }

func (b *bell) wait(due time.Time) error {
	var late <-chan time.Time
	if !due.IsZero() {
		late = time.After(time.Until(due))
	}
	select {
	case <-b.rung:
	case <-late:
	case <-b.ended:
		return os.ErrClosed
	}
	return nil
}

func (b *bell) close() { close(b.ended) }

// TestAlarms: inotify serves files of a cgroup only, and a clock elsewhere. Each ends by close,
// during a wait and before it.
func TestAlarms(t *testing.T) {
	directory := t.TempDir()
	file := directory + "/memory.max"
	require.NoError(t, os.WriteFile(file, []byte("1\n"), 0o600))
	assert.IsType(t, &clock{}, newAlarm([]string{file}, false), "no cgroup shows this file")
	assert.IsType(t, &clock{}, newAlarm(nil, true))
	_, err := newInotify([]string{file, directory + "/none"})
	require.ErrorIs(t, err, unix.ENOENT)
	synctest.Test(t, func(t *testing.T) {
		assert.IsType(t, &clock{}, newAlarm(nil, false), "a bubble")
	})
	for range 20 {
		a, err := newInotify([]string{file})
		require.NoError(t, err)
		c := newClock()
		var ended sync.WaitGroup
		woken := make(chan struct{}, 1)
		ended.Go(func() {
			for a.wait(time.Time{}) == nil {
				select {
				case woken <- struct{}{}:
				default:
				}
			}
		})
		ended.Go(func() {
			for c.wait(time.Now().Add(time.Hour)) == nil {
			}
		})
		require.NoError(t, os.WriteFile(file, []byte("2\n"), 0o600))
		<-woken
		a.close()
		c.close()
		c.close()
		ended.Wait()
	}
	a, err := newInotify([]string{file})
	require.NoError(t, err)
	assert.NoError(t, a.wait(time.Now()), "due")
	assert.NoError(t, newClock().wait(time.Now()), "due")
	a.close()
	assert.Error(t, a.wait(time.Time{}))
}

// TestLooksMakeNoGarbage holds for each file of a watch, of a fake tree and of the system.
func TestLooksMakeNoGarbage(t *testing.T) {
	const own = "/sys/fs/cgroup/a"
	m := &moving{files: map[string]string{}}
	m.set("proc/self/mountinfo", mounted2, "proc/self/cgroup", "0::/a\n", own+"/memory.max", "512\n",
		own+"/memory.high", "max\n", own+"/memory.events", "low 9\nhigh 5\nmax 6\noom 7\noom_kill 8\n")
	w := &limitWatch{t: teller{files: m}}
	ticks, err := w.find()
	require.NoError(t, err)
	assert.False(t, ticks)
	require.Len(t, w.files, 3)
	assert.True(t, w.look(), "the first")
	assert.Zero(t, testing.AllocsPerRun(100, func() { assert.False(t, w.look()) }))
	real := &limitWatch{t: system}
	_, err = real.find()
	t.Log(len(real.files), "files of this process's groups", err)
	real.look()
	assert.Zero(t, testing.AllocsPerRun(100, func() { real.look() }))
	for _, f := range real.files {
		f.close()
	}
}

// TestWatchOfThisProcess: stop, also a second one, ends a watch of real files.
func TestWatchOfThisProcess(t *testing.T) {
	if _, err := WatchLimits(func([]Limit, []string) {}, nil); err != nil {
		t.Skip("in a memory cgroup, go test ./platform runs it:", err)
	}
	var all []Limit
	stop, err := WatchLimits(func(limits []Limit, unread []string) {
		all = limits
		assert.Empty(t, unread)
	}, func(LimitEvents) {})
	require.NoError(t, err)
	want := Limits()
	require.Len(t, all, len(want))
	bounds := func(all []Limit) (bounds map[string]uint64) {
		bounds = map[string]uint64{}
		for _, l := range all {
			bounds[l.Name+l.Raise] = l.Bytes
		}
		return bounds
	}
	assert.Equal(t, bounds(want), bounds(all))
	stop()
	stop()
}

func FuzzBoundIn(f *testing.F) {
	for _, text := range []string{"max\n", "12\n", "18446744073709551615\n", "18446744073709551616\n", "5", "\n",
		"-1\n"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		state, value := boundIn(text)
		want, ok := tree(map[string]string{"file": string(text)}).number("file")
		switch {
		case state == bounded:
			assert.Equal(t, want, value)
			assert.True(t, ok)
		case state == noBound:
			assert.True(t, string(text) == "max\n" || ok && unlimited(want))
		case ok && bytes.HasSuffix(text, []byte("\n")):
			digits := strings.TrimSpace(string(text))
			assert.NotEqual(t, digits+"\n", string(text), "a number was not read")
		}
	})
}
