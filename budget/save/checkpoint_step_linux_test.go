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
	name := filepath.Join(t.TempDir(), "pond")
	child := traced(t, "TestCheckpointStepped", variable+"="+name)
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
	child.begins(t)
	for steps := 0; w.newest < stepped || w.whole > 0; steps++ {
		require.NoError(t, unix.PtraceSingleStep(child.thread))
		child.waits(t)
		require.NoError(t, w.look(), "after %d instructions", steps)
	}
	t.Logf("%d instructions from the first whole image on, %d of them while one image is whole", w.steps, w.single)
	assert.Greater(t, w.single, 1000)
	child.ends(t)
}

// tracedChild is another process with a thread that this one stops.
type tracedChild struct {
	*exec.Cmd
	thread int
	ask    io.Writer
	lines  io.Reader
}

// traced runs a test as a child that calls isTraced, and stops its thread there.
func traced(t *testing.T, test, variable string) (c *tracedChild) {
	step.Needs(t, step.Check)
	c = &tracedChild{Cmd: exec.Command(os.Args[0], "-test.run=^"+test+"$")}
	// A signal or a collection would only add instructions.
	c.Env = append(os.Environ(), variable, "GOGC=off", "GODEBUG=asyncpreemptoff=1")
	said, err := c.StdoutPipe()
	require.NoError(t, err)
	c.ask, err = c.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, step.Start(c.Cmd))
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	c.lines = bufio.NewReader(said)
	_, err = fmt.Fscanf(c.lines, "thread %d\n", &c.thread)
	require.NoError(t, err)
	runtime.LockOSThread() // the tracer is a thread
	t.Cleanup(runtime.UnlockOSThread)
	if err := unix.PtraceAttach(c.thread); errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSYS) {
		t.Skip("with the right to trace (ptrace), UPFRONT_STEP=check go test ./budget/save runs it:", err)
	} else {
		require.NoError(t, err)
	}
	c.waits(t)
	return c
}

// isTraced waits in the child until the parent traces its thread.
func isTraced(t *testing.T) {
	runtime.LockOSThread()
	fmt.Println("thread", unix.Gettid())
	_, err := unix.Read(0, make([]byte, 1))
	require.NoError(t, err)
}

func (c *tracedChild) begins(t *testing.T) {
	_, err := io.WriteString(c.ask, "!")
	require.NoError(t, err)
}

// waits returns when the thread has stopped.
func (c *tracedChild) waits(t *testing.T) {
	var status unix.WaitStatus
	_, err := unix.Wait4(c.thread, &status, unix.WALL, nil)
	require.NoError(t, err)
	require.True(t, status.Stopped(), "%#x", status)
	require.Contains(t, []unix.Signal{unix.SIGTRAP, unix.SIGSTOP}, status.StopSignal())
}

func (c *tracedChild) ends(t *testing.T) {
	require.NoError(t, unix.PtraceDetach(c.thread))
	_, err := fmt.Fscanf(c.lines, "done\n")
	require.NoError(t, err)
	require.NoError(t, c.Wait())
}

// writeStepped is the child: it writes while its thread is stepped.
func writeStepped(t *testing.T, name string) {
	c := checkpoints(t, name, save.CheckpointPlan{Slots: 1, Size: 32 << 10, Own: 8})
	mine := attach(t, c, 0, steppedPond(t))
	isTraced(t)
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

// TestCheckpointsMoveStepped stops another process at each system call of a move to a larger plan.
// There, as after a kill, the name has the whole file of the old plan or of the new one.
func TestCheckpointsMoveStepped(t *testing.T) {
	const variable = "UPFRONT_SAVE_MOVED"
	large := save.CheckpointPlan{Slots: 4, Size: 64 << 10, Own: 100}
	if name := os.Getenv(variable); name != "" {
		isTraced(t)
		checkpoints(t, name, large)
		fmt.Println("done")
		return
	}
	m := newMoved(t)
	image := (len(m.file) - save.CheckpointPage) / 6 // also with the larger Own
	isNew := func(file []byte) error {
		if len(file) != save.CheckpointPage+8*image || binary.LittleEndian.Uint64(file[48:]) != 1 {
			return fmt.Errorf("a file of %d bytes", len(file))
		}
		for i := range 6 {
			was, is := m.file[save.CheckpointPage+i*image:][:image], file[save.CheckpointPage+i*image:][:image]
			if !bytes.Equal(was[:64+40], is[:64+40]) || !bytes.Equal(was[128:][:64<<10], is[192:][:64<<10]) {
				return fmt.Errorf("image %d is another", i)
			}
		}
		return nil
	}
	child := traced(t, "TestCheckpointsMoveStepped", variable+"="+m.name)
	child.begins(t)
	stops := 0
	for after := 0; after < 5; stops++ {
		require.NoError(t, unix.PtraceSyscall(child.thread, 0))
		child.waits(t)
		if file := m.read(t); after == 0 && bytes.Equal(file, m.file) {
			continue
		} else {
			require.NoError(t, isNew(file), "at stop %d", stops)
		}
		after++
	}
	t.Logf("%d stops", stops)
	assert.Greater(t, stops, 20)
	child.ends(t)
	m.is(t, large, 0, 2)
}
