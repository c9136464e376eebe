package flight_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/flight"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/step"
)

// told are the reasons of what was written, and errors.
type told struct {
	mu      sync.Mutex
	reasons []string
	errs    []error
}

func (l *told) options(o flight.Options) flight.Options {
	o.OnFile = func(_, reason string) { l.mu.Lock(); defer l.mu.Unlock(); l.reasons = append(l.reasons, reason) }
	o.OnError = func(err error) { l.mu.Lock(); defer l.mu.Unlock(); l.errs = append(l.errs, err) }
	return o
}

func start(t testing.TB, dir string, o flight.Options) *flight.Recorder {
	t.Helper()
	r, err := flight.Start(dir, o)
	require.NoError(t, err)
	t.Cleanup(r.Close)
	return r
}

func settled(t testing.TB, r *flight.Recorder, want flight.Counts) {
	t.Helper()
	require.Eventually(t, func() bool { return r.Counts() == want }, 5*time.Minute, time.Millisecond, "want %+v", want)
}

func files(t testing.TB, dir string) (names []string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, file := range list {
		names = append(names, file.Name())
	}
	return names
}

// TestAFullIsWritten: who opens the file finds the load that was too large, and why it was written.
func TestAFullIsWritten(t *testing.T) {
	dir, said := t.TempDir(), &told{}
	r := start(t, dir, said.options(flight.Options{Name: "pond"}))
	b, err := budget.Open(budget.Plan{Name: "pond", Regions: []budget.RegionPlan{{Name: "level", Size: 64 * budget.KiB}}})
	require.NoError(t, err)
	defer b.Close()
	_, err = budget.Load(context.Background(), b.Region("level"), func(s scope.Scope) (*int, error) {
		s.Bytes(1 << 20)
		return nil, nil
	})
	assert.Equal(t, err, r.Watch(err))
	assert.NoError(t, r.Watch(nil))
	other := errors.New("no full")
	assert.Equal(t, other, r.Watch(other))
	settled(t, r, flight.Counts{Written: 1})
	assert.Equal(t, []string{"pond-001.trace"}, files(t, dir))
	r.Close()
	assert.Equal(t, []string{err.Error()}, said.reasons)

	step.Needs(t, step.Check)
	if _, err := exec.LookPath("go"); err != nil {
		step.Lacks(t, "go", "golang-go")
	}
	out, err := exec.Command("go", "tool", "trace", "-d=parsed", filepath.Join(dir, "pond-001.trace")).CombinedOutput()
	require.NoError(t, err, string(out))
	assert.Contains(t, string(out), `Type="upfront.Load"`)
	assert.Contains(t, string(out), `Category="upfront.region" Message="level"`)
	assert.Contains(t, string(out), `Category="upfront.flight" Message="budget \"pond\": region level is full`)
}

// TestAThousandAtOnce make no more files than there may be, and each of them is counted.
func TestAThousandAtOnce(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "flight-002.trace"), []byte("an earlier run's"), 0o644))
	r := start(t, dir, flight.Options{Files: 4, Every: time.Nanosecond})
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			for range 100 {
				r.Dump("at once")
				runtime.Gosched()
			}
		})
	}
	all.Wait()
	r.Close()
	c := r.Counts()
	assert.LessOrEqual(t, c.Written, int64(3))
	assert.Positive(t, c.Written)
	assert.EqualValues(t, 1000, c.Written+c.LeftOut+c.Failed)
	assert.Len(t, files(t, dir), int(c.Written)+1)
	text, err := os.ReadFile(filepath.Join(dir, "flight-002.trace"))
	require.NoError(t, err)
	assert.Equal(t, "an earlier run's", string(text))
}

// TestFullFolder is told, with what to do.
func TestFullFolder(t *testing.T) {
	said := make(chan error, 1)
	r := start(t, t.TempDir(), flight.Options{Files: 1, Every: time.Nanosecond, OnError: func(err error) { said <- err }})
	r.Dump("the first")
	settled(t, r, flight.Counts{Written: 1})
	r.Dump("one more")
	assert.ErrorContains(t, <-said, "has all its 1 files, NAME-001.trace and so on: take some away, or raise Options.Files")
	settled(t, r, flight.Counts{Written: 1, Failed: 1})
}

func TestNotTooOften(t *testing.T) {
	dir, said := t.TempDir(), &told{}
	r := start(t, dir, said.options(flight.Options{Every: time.Hour}))
	r.Dump("the first")
	settled(t, r, flight.Counts{Written: 1})
	r.Dump("too soon")
	settled(t, r, flight.Counts{Written: 1, LeftOut: 1})
	r.Close()
	r.Dump("too late")
	assert.Equal(t, flight.Counts{Written: 1, LeftOut: 2}, r.Counts())
	assert.Equal(t, []string{"the first"}, said.reasons)
}

// TestWhatCannotBeWritten is told, and leaves nothing behind.
func TestWhatCannotBeWritten(t *testing.T) {
	dir, said := filepath.Join(t.TempDir(), "away"), &told{}
	require.NoError(t, os.Mkdir(dir, 0o755))
	r := start(t, dir, said.options(flight.Options{Every: time.Nanosecond}))
	require.NoError(t, os.Remove(dir))
	r.Dump("no folder")
	settled(t, r, flight.Counts{Failed: 1})

	require.NoError(t, os.Mkdir(dir, 0o755))
	restore := flight.OpenBy(func(path string, flag int, mode os.FileMode) (*os.File, error) {
		file, err := os.OpenFile(path, flag, mode)
		if err != nil {
			return nil, err
		}
		return file, file.Close() // whoever writes fails, as on a disk that is full
	})
	r.Dump("no room")
	settled(t, r, flight.Counts{Failed: 2})
	r.Close()
	restore()
	assert.Empty(t, files(t, dir))
	assert.ErrorIs(t, said.errs[0], fs.ErrNotExist)
	assert.ErrorContains(t, said.errs[0], `flight: "no folder"`)
	assert.ErrorIs(t, said.errs[1], fs.ErrClosed)
}

func TestStartIsRefused(t *testing.T) {
	dir := t.TempDir()
	_, err := flight.Start(filepath.Join(dir, "none"), flight.Options{})
	assert.ErrorIs(t, err, fs.ErrNotExist)
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o644))
	_, err = flight.Start(file, flight.Options{})
	assert.ErrorContains(t, err, "is no folder")
	_, err = flight.Start(dir, flight.Options{Name: "../x"})
	assert.ErrorContains(t, err, "without a folder")
	r := start(t, dir, flight.Options{})
	_, err = flight.Start(dir, flight.Options{})
	assert.ErrorContains(t, err, "already enabled")
	r.Close()
	start(t, dir, flight.Options{}).Close()
}

// TestOff: a nil recorder does nothing, but gives an error back.
func TestOff(t *testing.T) {
	var off *flight.Recorder
	off.Dump("x")
	off.Close()
	assert.Zero(t, off.Counts())
	assert.Equal(t, budget.ErrFull, off.Watch(budget.ErrFull))
}

// TestDumpAllocatesNothing, wherever the recorder is.
func TestDumpAllocatesNothing(t *testing.T) {
	if arena_c.Race || arena_c.Asan {
		t.Skip("this build allocates for itself: go test ./budget/flight does not")
	}
	r := start(t, t.TempDir(), flight.Options{Every: time.Hour})
	r.Dump("the first")
	settled(t, r, flight.Counts{Written: 1})
	assert.Zero(t, testing.AllocsPerRun(1000, func() { r.Dump("late"); _ = r.Watch(nil) }))
}
