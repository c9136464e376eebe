//go:build linux

package serve

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
)

func startFlight(t *testing.T, folder string, rest time.Duration) (f *flight, said func() []string) {
	t.Helper()
	var mu sync.Mutex
	var texts []string
	f, err := newFlight(folder, rest, func(err error) {
		mu.Lock()
		defer mu.Unlock()
		texts = append(texts, err.Error())
	})
	require.NoError(t, err)
	t.Cleanup(f.recorder.Stop)
	return f, func() []string { mu.Lock(); defer mu.Unlock(); return texts }
}

func traces(t *testing.T, folder string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "frogpond-*.trace"))
	require.NoError(t, err)
	return files
}

// A thousand reasons at once make one trace, and the next one waits for the rest.
func TestFlightRests(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "made")
	f, said := startFlight(t, folder, time.Hour)
	f.watch(errors.New("no full"))
	f.watch(nil)
	assert.False(t, f.busy.Load())
	full := fmt.Errorf("level: %w", budget.ErrFull)
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			for range 100 {
				f.watch(full)
			}
		})
	}
	all.Wait()
	f.close()
	f.dump("too soon")
	f.writing.Wait()
	files := traces(t, folder)
	require.Len(t, files, 1)
	assert.Equal(t, []string{full.Error() + ": the last seconds are in " + files[0]}, said())
	text, err := os.ReadFile(files[0])
	require.NoError(t, err)
	assert.Contains(t, string(text), full.Error(), "the log")
}

// A run writes at most eight traces, and keeps the traces of earlier runs.
func TestFlightFiles(t *testing.T) {
	folder := t.TempDir()
	earlier := filepath.Join(folder, "frogpond-1.trace")
	require.NoError(t, os.WriteFile(earlier, []byte("an earlier run's"), 0o644))
	f, said := startFlight(t, folder, 0)
	require.Eventually(t, func() bool {
		f.dump("late")
		return len(said()) == 8
	}, patience, time.Millisecond)
	for range 100 {
		f.dump("late")
	}
	f.close()
	assert.Len(t, said(), 8)
	assert.Len(t, traces(t, folder), 9)
	text, err := os.ReadFile(earlier)
	require.NoError(t, err)
	assert.Equal(t, "an earlier run's", string(text))
}

// Failures to write are reported; a second recorder and a folder that is a file are refused.
func TestFlightFails(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "gone")
	f, said := startFlight(t, folder, time.Hour)
	_, err := newFlight(folder, 0, nil)
	assert.ErrorContains(t, err, "-flight: ")
	require.NoError(t, os.Remove(folder))
	f.dump("late")
	f.close()
	require.Len(t, said(), 1)
	assert.Contains(t, said()[0], "-flight: open "+folder)

	require.NoError(t, os.WriteFile(folder, nil, 0o644))
	_, err = newFlight(folder, 0, nil)
	assert.ErrorContains(t, err, "-flight: mkdir "+folder)
	var off *flight
	off.watch(budget.ErrFull)
	off.close()
}
