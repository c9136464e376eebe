package disk

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func openSaves(t *testing.T, dir string) *Saves {
	t.Helper()
	s, err := OpenSaves(dir, 2)
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

// head returns a header with distinct bytes.
func head() SaveHead {
	h := SaveHead{Seed: 0x1112131415161718, Tick: 0x21222324, Epoch: 0x31323334,
		Map: [8]byte{'M', 'A', 'P', '0', '7'}, MapSum: 0x4142434445464748}
	for i := range h.Names {
		copy(h.Names[i][:], "frog "+string(rune('a'+i)))
	}
	return h
}

// file returns bytes that stand for a file of package budget/save, which package disk doesn't
// parse.
func file(c byte, size int) []byte { return bytes.Repeat([]byte{c}, size) }

func checkSave(t *testing.T, s *Saves, room int, serial uint64, want []byte) {
	t.Helper()
	h, got, found, err := s.Read(room)
	require.NoError(t, err)
	require.True(t, found)
	expected := head()
	expected.Serial = serial
	assert.Equal(t, expected, h)
	assert.Equal(t, want, got)
}

// Read returns the last save, even if the save before was larger. A server that is started later
// reads the same.
func TestSavesInTurn(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "folder")
	s := openSaves(t, dir)
	_, _, found, err := s.Read(0)
	require.NoError(t, err)
	require.False(t, found)
	for i, size := range []int{100, 60, 0, 80, 10} {
		h := head()
		require.NoError(t, s.Write(1, &h, file(byte(i), size)))
		assert.EqualValues(t, i+1, h.Serial)
		checkSave(t, s, 1, h.Serial, file(byte(i), size))
	}
	require.NoError(t, s.Close())
	s = openSaves(t, dir)
	checkSave(t, s, 1, 5, file(4, 10))
	h := head()
	require.NoError(t, s.Write(1, &h, file(5, 20)))
	require.NoError(t, os.Truncate(filepath.Join(dir, "room-01.b"), 0))
	checkSave(t, s, 1, 5, file(4, 10)) // the oldest was replaced

	_, _, found, err = s.Read(0)
	require.NoError(t, err)
	assert.False(t, found, "the other room has nothing")
}

// A crash at any byte of a write leaves the save before, or the whole new one.
func TestTornSave(t *testing.T) {
	dir := t.TempDir()
	s := openSaves(t, dir)
	for i := range 3 {
		h := head()
		require.NoError(t, s.Write(0, &h, file(byte(i+1), 40)))
	}
	name := filepath.Join(dir, "room-00.a")
	whole, err := os.ReadFile(name)
	require.NoError(t, err)
	check := func(torn []byte, what string, at int) {
		_, _, taken, _ := parseSave(torn, 0)
		require.Equal(t, bytes.Equal(torn, whole), taken, "%s %d", what, at)
		if at%73 != 0 { // for speed, only some are written to the disk
			return
		}
		require.NoError(t, os.WriteFile(name, torn, 0o644))
		h, got, found, err := s.Read(0)
		require.NoError(t, err, "%s %d", what, at)
		require.True(t, found)
		if bytes.Equal(torn, whole) {
			require.Equal(t, file(3, 40), got)
		} else {
			require.EqualValues(t, 2, h.Serial, "%s %d", what, at)
			require.Equal(t, file(2, 40), got)
		}
	}
	for n := range len(whole) + 1 {
		check(whole[:n], "cut off at", n)
		check(append(make([]byte, min(n, saveHeader)), whole[min(n, saveHeader):]...), "zeros to", n)
	}
	for n := range saveHeader + 1 {
		torn := append(bytes.Clone(whole[:n]), make([]byte, saveHeader-n)...)
		check(append(torn, whole[saveHeader:]...), "a header up to", n)
	}
	old := bytes.Clone(whole) // a new file under an old header
	copy(old[saveHeader:], file(9, 1))
	check(old, "an old header", 0)
	check(append(old[:0:0], whole...), "whole", 0)
}

// If a room's only save has a flipped bit, the error reports it. If both saves are damaged, the
// error reports both.
func TestDamagedSave(t *testing.T) {
	dir := t.TempDir()
	s := openSaves(t, dir)
	h := head()
	require.NoError(t, s.Write(0, &h, file(7, 40)))
	data, err := os.ReadFile(filepath.Join(dir, "room-00.a"))
	require.NoError(t, err)
	_, _, whole, err := parseSave(data, 0)
	require.NoError(t, err)
	require.True(t, whole)
	for bit := range 8 * len(data) {
		data[bit/8] ^= 1 << (bit % 8)
		_, _, whole, err := parseSave(data, 0)
		require.ErrorContains(t, err, "byte ", "bit %d", bit)
		require.False(t, whole)
		data[bit/8] ^= 1 << (bit % 8)
	}
	_, _, _, err = parseSave(data, 3)
	assert.EqualError(t, err, "byte 12: it is of room 0")

	require.NoError(t, s.Write(0, &h, file(8, 40)))
	for _, end := range []string{"a", "b"} {
		require.NoError(t, os.Truncate(filepath.Join(dir, "room-00."+end), 540))
	}
	_, _, _, err = s.Read(0)
	assert.ErrorContains(t, err, "room-00.a: byte 40: 28 bytes follow the header, not 40; ")
	assert.ErrorContains(t, err, "room-00.b: byte 40: 28 bytes")
	require.NoError(t, s.Close())
	s = openSaves(t, dir) // a server starts even with damaged saves
	require.NoError(t, s.Write(0, &h, file(9, 40)))
	checkSave(t, s, 0, h.Serial, file(9, 40))
}

func TestTwoServers(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("on Windows no file is locked: on Linux, go test ./tests/frogpond/internal/disk runs it")
	}
	dir := t.TempDir()
	first := openSaves(t, dir)
	_, err := OpenSaves(dir, 2)
	assert.EqualError(t, err, filepath.Join(dir, "lock")+": another server has it")
	require.NoError(t, first.Close())
	openSaves(t, dir)

	name := filepath.Join(dir, "scores")
	openScoresOf(t, name)
	_, _, err = OpenScores(name)
	assert.EqualError(t, err, name+": another server has it")
}

// full makes a file that takes no bytes.
func full(t *testing.T, name string) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("needs /dev/full: on Linux, go test ./tests/frogpond/internal/disk runs it")
	}
	require.NoError(t, os.Symlink("/dev/full", name))
}

const noSpace = ": no space left on device"

func TestSaveOnFullDisk(t *testing.T) {
	dir := t.TempDir()
	s := openSaves(t, dir)
	h := head()
	require.NoError(t, s.Write(0, &h, file(1, 40)))
	for range 2 {
		full(t, filepath.Join(dir, "room-00.b.new"))
		assert.ErrorContains(t, s.Write(0, &h, file(2, 40)), "room-00.b"+noSpace)
		checkSave(t, s, 0, 1, file(1, 40))
		assert.NoFileExists(t, filepath.Join(dir, "room-00.b"))
		assert.NoFileExists(t, filepath.Join(dir, "room-00.b.new"), "nor does it keep the disk full")
	}
	require.NoError(t, s.Write(0, &h, file(3, 40)))
	checkSave(t, s, 0, 2, file(3, 40))
}

// A save replaces an older one as a whole: a reader that has the older file open keeps its content.
// Before the first save the folder has none.
func TestSaveIsWholeOrNotThere(t *testing.T) {
	dir := t.TempDir()
	s := openSaves(t, dir)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, entries, 1, "the lock")
	h := head()
	require.NoError(t, s.Write(0, &h, file(1, 40)))
	old, err := os.Open(filepath.Join(dir, "room-00.a"))
	require.NoError(t, err)
	if runtime.GOOS == "windows" { // it doesn't replace an open file
		require.NoError(t, old.Close())
	}
	defer old.Close()
	for i := range 2 {
		require.NoError(t, s.Write(0, &h, file(byte(i+2), 30)))
	}
	checkSave(t, s, 0, 3, file(3, 30))
	if runtime.GOOS != "windows" {
		data, err := io.ReadAll(old)
		require.NoError(t, err)
		_, is, whole, err := parseSave(data, 0)
		require.NoError(t, err)
		require.True(t, whole)
		assert.Equal(t, file(1, 40), is)
	}
	for _, name := range []string{"room-00.a.new", "room-00.b.new"} {
		assert.NoFileExists(t, filepath.Join(dir, name))
	}
}

// Writes in play make no Go allocation.
func TestNoGoAllocation(t *testing.T) {
	dir := t.TempDir()
	s, scores, r := openSaves(t, dir), openScoresOf(t, filepath.Join(dir, "scores")),
		createRecord(t, dir, recordOf(2), nil)
	h, state, ticks, list := head(), file(1, 100<<10), make([]byte, 35*TickSize(2)),
		make([]Score, 100)
	for name, write := range map[string]func() error{
		"save":   func() error { return s.Write(0, &h, state) },
		"inputs": func() error { return r.Append(ticks) },
		"scores": func() error { return scores.Append(list) },
		"sync":   scores.Sync,
	} {
		var err error
		allocs := testing.AllocsPerRun(5, func() { err = write() })
		assert.NoError(t, err, name)
		if name != "save" || runtime.GOOS == "linux" {
			assert.Zero(t, allocs, name)
		}
	}
}
