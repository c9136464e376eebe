//go:build amd64 && !race && !asan && !checked && !upfront_cgo

package save_test

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/tests/step"
)

const stepped = 4 // writes

// steppedPond returns a ring with the snapshots that are written.
func steppedPond(t *testing.T) *save.Ring {
	p := newPond(t, open(t, pondPlan()), "level", stepped)
	for n := uint64(1); n <= stepped; n++ {
		for i := range uint64(5) {
			p.step(n*7 + i)
		}
		require.NoError(t, p.ring.Take(n))
	}
	return p.ring
}

// TestCheckpointStepped runs Write and Clear one instruction at a time in another process. After
// each instruction, as after a kill there, the file has the last whole image or the new one, and no
// other; in Clear it has the last image or none. The first two writes also have the description of
// the types.
func TestCheckpointStepped(t *testing.T) {
	const variable = "UPFRONT_SAVE_STEPPED"
	if name := os.Getenv(variable); name != "" {
		writeStepped(t, name)
		return
	}
	step.Needs(t, step.Check)
	name := filepath.Join(t.TempDir(), "pond")
	child := exec.Command(os.Args[0], "-test.run=^TestCheckpointStepped$")
	// A signal or a collection would only add instructions.
	child.Env = append(os.Environ(), variable+"="+name, "GOGC=off", "GODEBUG=asyncpreemptoff=1")
	said, err := child.StdoutPipe()
	require.NoError(t, err)
	ask, err := child.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, step.Start(child))
	defer func() {
		_ = child.Process.Kill()
		_ = child.Wait()
	}()
	lines := bufio.NewReader(said)
	var thread int
	_, err = fmt.Fscanf(lines, "thread %d\n", &thread)
	require.NoError(t, err)

	runtime.LockOSThread() // the tracer is a thread
	defer runtime.UnlockOSThread()
	if err := unix.PtraceAttach(thread); errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSYS) {
		t.Skip("with the right to trace (ptrace), UPFRONT_STEP=check go test ./budget/save runs it:", err)
	} else {
		require.NoError(t, err)
	}
	waits(t, thread)
	file, err := os.Open(name)
	require.NoError(t, err)
	defer file.Close()
	info, err := file.Stat()
	require.NoError(t, err)
	place, err := unix.Mmap(int(file.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_SHARED)
	require.NoError(t, err)
	defer func() { _ = unix.Munmap(place) }()

	w := watcher{place: place, half: (len(place) - save.CheckpointPage) / 2, want: make([][]byte, 1)}
	ring := steppedPond(t)
	for n := uint64(1); n <= stepped; n++ {
		w.want = append(w.want, save.Image(ring, n))
	}
	_, err = io.WriteString(ask, "!")
	require.NoError(t, err)
	for steps := 0; w.newest < stepped || w.whole > 0; steps++ {
		require.NoError(t, unix.PtraceSingleStep(thread))
		waits(t, thread)
		require.NoError(t, w.look(), "after %d instructions", steps)
	}
	t.Logf("%d instructions from the first whole image on, %d of them while one image is whole", w.steps, w.single)
	assert.Greater(t, w.single, 1000)
	require.NoError(t, unix.PtraceDetach(thread))
	_, err = fmt.Fscanf(lines, "done\n")
	require.NoError(t, err)
	require.NoError(t, child.Wait())
}

// waits returns when the thread has stopped.
func waits(t *testing.T, thread int) {
	var status unix.WaitStatus
	_, err := unix.Wait4(thread, &status, unix.WALL, nil)
	require.NoError(t, err)
	require.True(t, status.Stopped(), "%#x", status)
	require.Contains(t, []unix.Signal{unix.SIGTRAP, unix.SIGSTOP}, status.StopSignal())
}

// writeStepped is the child: it writes while its thread is stepped.
func writeStepped(t *testing.T, name string) {
	runtime.LockOSThread()
	c := checkpoints(t, name, save.CheckpointPlan{Slots: 1, Size: 32 << 10, Own: 8})
	mine := attach(t, c, 0, steppedPond(t))
	fmt.Println("thread", unix.Gettid())
	_, err := unix.Read(0, make([]byte, 1))
	require.NoError(t, err)
	for n := uint64(1); n <= stepped; n++ {
		require.NoError(t, mine.Write(n, binary.LittleEndian.AppendUint64(nil, n)))
	}
	require.NoError(t, mine.Clear())
	fmt.Println("done")
}

// watcher compares each whole image in a file with the snapshot of its number.
type watcher struct {
	place         []byte
	half          int
	want          [][]byte
	newest, whole int // the highest number so far, and the number of whole images
	steps, single int
}

func (w *watcher) look() error {
	whole, newest := 0, 0
	for half := range 2 {
		b := w.place[save.CheckpointPage+half*w.half:]
		word := func(i int) int { return int(binary.LittleEndian.Uint64(b[8*i:])) }
		sequence, number := word(0), word(1)
		if sequence == 0 {
			continue
		}
		whole++
		newest = max(newest, sequence)
		own, text := b[64:128], b[128:]
		image := text[(word(2)+63)&^63:]
		switch {
		case sequence != number || number >= len(w.want):
			return fmt.Errorf("sequence %d of snapshot %d", sequence, number)
		case word(4) != 8 || int(own[0]) != number:
			return fmt.Errorf("own bytes % x of snapshot %d", own[:8], number)
		case word(3) != len(w.want[number]) || !bytes.Equal(image[:word(3)], w.want[number]):
			return fmt.Errorf("the image of snapshot %d is another", number)
		case save.SumOf(text[:word(2)]) != uint32(word(6)):
			return fmt.Errorf("the description of snapshot %d is another", number)
		}
	}
	isCleared := newest == 0 && w.newest == stepped
	switch {
	case newest != w.newest && newest != w.newest+1 && !isCleared:
		return fmt.Errorf("the newest image was %d, and is %d", w.newest, newest)
	case whole == 0 && w.newest != 0 && !isCleared:
		return errors.New("no image is whole")
	}
	if w.newest, w.whole = max(w.newest, newest), whole; whole == 1 {
		w.single++
	}
	if newest != 0 {
		w.steps++
	}
	return nil
}
