package disk

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// huge makes a sparse file of 40 GB.
func huge(t *testing.T, name string) {
	t.Helper()
	if file, err := os.OpenFile(name, os.O_CREATE, 0o644); assert.NoError(t, err) {
		require.NoError(t, file.Close())
	}
	if err := os.Truncate(name, 40e9); err != nil {
		t.Skip("with a TMPDIR that has sparse files, go test ./tests/frogpond/internal/disk runs it:", err)
	}
}

// takes returns the Go heap that fn allocates, in bytes.
func takes(fn func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	fn()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// A file of 40 GB doesn't end a server: its size is checked before memory is allocated.
func TestHugeFiles(t *testing.T) {
	dir := t.TempDir()
	name := func(file string) string { return filepath.Join(dir, file) }
	s := openSaves(t, dir)
	h := head()
	require.NoError(t, s.Write(0, &h, file(7, 40)))
	require.NoError(t, s.Close())
	huge(t, name("room-00.b"))
	huge(t, name("room-01.a"))
	recorded(t, dir, recordOf(2), nil)
	huge(t, name("room-07-0003.inputs"))
	scores := openScoresOf(t, name("scores"))
	require.NoError(t, scores.Append(someScores(3)))
	require.NoError(t, scores.Close())
	huge(t, name("scores"))

	assert.LessOrEqual(t, takes(func() {
		s = openSaves(t, dir)
		checkSave(t, s, 0, 1, file(7, 40))
		_, _, _, err := s.Read(1)
		assert.EqualError(t, err,
			name("room-01.a")+": it has 40000000000 bytes: a save has at most 16777216")
		_, err = OpenReplay(name("room-07-0003.inputs"))
		assert.EqualError(t, err, name("room-07-0003.inputs")+
			": it has 40000000000 bytes: a record has at most 268435456")
		const notScores = ": byte 192: more than 65536 bytes from here on hold no whole score"
		_, _, err = OpenScores(name("scores"))
		assert.EqualError(t, err, name("scores")+notScores)
		list, _, err := readScores(name("scores"))
		assert.EqualError(t, err, name("scores")+notScores)
		assert.Equal(t, someScores(3), list)
	}), uint64(1<<20))
	require.NoError(t, s.Write(1, &h, file(9, 40)), "what is no save is written over")
	checkSave(t, s, 1, h.Serial, file(9, 40))
}

// A file that is too large to be read again isn't written.
func TestTooLargeToWrite(t *testing.T) {
	dir := t.TempDir()
	s := openSaves(t, dir)
	h := head()
	require.NoError(t, s.Write(0, &h, file(7, 40)))
	assert.EqualError(t, s.Write(0, &h, make([]byte, SaveMost)), filepath.Join(dir, "room-00.b")+
		": it has 16777728 bytes: a save has at most 16777216")
	checkSave(t, s, 0, 1, file(7, 40))
	require.NoError(t, s.Write(0, &h, make([]byte, SaveMost-saveHeader)))
	checkSave(t, s, 0, 2, make([]byte, SaveMost-saveHeader))

	_, err := CreateRecord(dir, recordOf(2), make([]byte, SaveMost+1))
	assert.EqualError(t, err, "it has 16777217 bytes: a state has at most 16777216")
	r := createRecord(t, dir, recordOf(2), nil)
	appendTicks(t, r, 0, 2)
	was := r.size
	r.size = RecordMost - int64(TickSize(2)) + 1
	for range 2 {
		assert.EqualError(t, r.Append(make([]byte, TickSize(2))), filepath.Join(dir,
			"room-07-0003.inputs")+": it has 268435457 bytes: a record has at most 268435456; it ends here")
	}
	r.size = was
	replay, err := OpenReplay(filepath.Join(dir, "room-07-0003.inputs"))
	require.NoError(t, err)
	checkTicks(t, replay, 2)
}

// A record that isn't a regular file isn't opened, since the opening of a pipe would wait for a
// writer.
func TestRecordThatIsNoFile(t *testing.T) {
	_, err := OpenReplay(os.DevNull)
	assert.EqualError(t, err, os.DevNull+": it isn't a regular file")
	_, err = OpenReplay(t.TempDir())
	assert.ErrorContains(t, err, ": it isn't a regular file")
}
