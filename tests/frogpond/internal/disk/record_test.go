package disk

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func recordOf(players uint32) *RecordHead {
	return &RecordHead{Room: 7, Epoch: 3, Seed: 0x1112131415161718, Players: players,
		Map: [8]byte{'E', '1', 'M', '1'}, MapSum: 0x2122232425262728}
}

func createRecord(t *testing.T, dir string, h *RecordHead, state []byte) *Record {
	t.Helper()
	r, err := CreateRecord(dir, h, state)
	require.NoError(t, err)
	t.Cleanup(func() { r.Close() })
	return r
}

// input returns the i-th byte of the inputs of a tick.
func input(tick, i int) byte { return byte(tick*31 + i) }

// appendTicks appends the ticks from from to before to, in one call.
func appendTicks(t *testing.T, r *Record, from, to int) {
	t.Helper()
	size := TickSize(r.players)
	ticks := make([]byte, (to-from)*size)
	for at := range ticks {
		ticks[at] = input(from+at/size, at%size)
	}
	require.NoError(t, r.Append(ticks))
}

func checkTicks(t *testing.T, r *Replay, ticks int) {
	t.Helper()
	require.Equal(t, ticks, r.Ticks)
	for tick := range ticks {
		inputs := r.Inputs(tick)
		require.Len(t, inputs, 12*int(r.Head.Players))
		for i, b := range inputs {
			require.Equal(t, input(tick, i), b, "tick %d", tick)
		}
	}
}

// recorded makes a record of ten ticks, and returns its file.
func recorded(t *testing.T, dir string, h *RecordHead, state []byte) (name string, data []byte) {
	t.Helper()
	r := createRecord(t, dir, h, state)
	appendTicks(t, r, 0, 1)
	appendTicks(t, r, 1, 1)
	appendTicks(t, r, 1, 10)
	require.NoError(t, r.Close())
	name = filepath.Join(dir, "room-07-0003.inputs")
	data, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Len(t, data, recordHeader+len(state)+10*TickSize(int(h.Players)))
	return name, data
}

func TestRecord(t *testing.T) {
	late := recordOf(3)
	late.FirstTick = 1 << 20
	for _, test := range []struct {
		head  *RecordHead
		state []byte
	}{{recordOf(1), []byte{}}, {recordOf(16), []byte{}}, {late, file(5, 33)}} {
		name, _ := recorded(t, t.TempDir(), test.head, test.state)
		r, err := OpenReplay(name)
		require.NoError(t, err)
		assert.Equal(t, *test.head, r.Head)
		assert.Equal(t, test.state, r.State)
		assert.Zero(t, r.Torn)
		checkTicks(t, r, 10)
	}
}

func TestRecordRefused(t *testing.T) {
	dir := t.TempDir()
	name, before := recorded(t, dir, recordOf(2), nil)
	_, err := CreateRecord(dir, recordOf(2), nil)
	assert.ErrorIs(t, err, os.ErrExist)
	after, err := os.ReadFile(name)
	require.NoError(t, err)
	assert.Equal(t, before, after)
	_, err = CreateRecord(dir, recordOf(0), nil)
	assert.EqualError(t, err, "a record is of 1 to 256 players, not 0")
	other := recordOf(2)
	other.Room = 256
	_, err = CreateRecord(dir, other, nil)
	assert.EqualError(t, err, "a record is of one of 256 rooms, not 256")
	other.Room = 7
	other.Epoch, other.FirstTick = 4, 9
	_, err = CreateRecord(dir, other, nil)
	assert.EqualError(t, err, "a record from tick 9 on needs the state before it")
}

// A record that lacks a tick takes no further ticks. Its whole ticks can be read.
func TestRecordOnFullDisk(t *testing.T) {
	dir := t.TempDir()
	full(t, filepath.Join(dir, "room-07-0003.inputs.new"))
	_, err := CreateRecord(dir, recordOf(2), nil)
	require.ErrorContains(t, err, noSpace)
	require.NoError(t, os.Remove(filepath.Join(dir, "room-07-0003.inputs.new")))

	r := createRecord(t, dir, recordOf(2), nil)
	appendTicks(t, r, 0, 4)
	good := r.file
	defer good.Close()
	r.file, err = os.OpenFile("/dev/full", os.O_WRONLY, 0)
	require.NoError(t, err)
	tick := make([]byte, TickSize(2))
	require.ErrorContains(t, r.Append(tick), noSpace)
	require.NoError(t, r.file.Close())
	r.file = good
	assert.ErrorContains(t, r.Append(tick), noSpace)
	replay, err := OpenReplay(good.Name())
	require.NoError(t, err)
	checkTicks(t, replay, 4)

	r = createRecord(t, t.TempDir(), recordOf(2), nil)
	assert.ErrorContains(t, r.Append(tick[1:]), "27 bytes are no ticks of 2 players, 28 bytes each")
	assert.Error(t, r.Close())
}

// A record cut off at any byte has its whole ticks, and reports the torn bytes.
func TestTornRecord(t *testing.T) {
	state := file(5, 20)
	_, data := recorded(t, t.TempDir(), recordOf(2), state)
	start, size := recordHeader+len(state), TickSize(2)
	for n := range len(data) {
		r, err := parseReplay(data[:n])
		if n < start {
			require.ErrorContains(t, err, "the file ends within ", "%d bytes", n)
			continue
		}
		require.NoError(t, err)
		checkTicks(t, r, (n-start)/size)
		require.Equal(t, (n-start)%size, r.Torn)
	}
	zeros := bytes.Clone(data) // the disk has the size, but not the bytes
	clear(zeros[start+7*size:])
	r, err := parseReplay(zeros)
	require.NoError(t, err)
	checkTicks(t, r, 7)
	assert.Equal(t, 3*size, r.Torn)
}

// Each flipped bit is reported, and so are ticks in another order and a missing tick.
func TestDamagedRecord(t *testing.T) {
	state := file(5, 20)
	_, data := recorded(t, t.TempDir(), recordOf(2), state)
	start, size := recordHeader+len(state), TickSize(2)
	last := len(data) - size
	for bit := range 8 * len(data) {
		data[bit/8] ^= 1 << (bit % 8)
		r, err := parseReplay(data)
		if bit/8 < last {
			require.ErrorContains(t, err, "byte ", "bit %d", bit)
		} else {
			require.NoError(t, err)
			require.Equal(t, size, r.Torn)
		}
		data[bit/8] ^= 1 << (bit % 8)
	}
	tick := func(i int) []byte { return data[start+i*size:][:size] }
	_, err := parseReplay(append(append(append(bytes.Clone(data[:start+3*size]), tick(4)...),
		tick(3)...), data[start+5*size:]...))
	assert.EqualError(t, err, "byte 176: tick 3 is damaged, and tick 5 is not")
	r, err := parseReplay(append(bytes.Clone(data[:start+3*size]), data[start+4*size:]...))
	require.NoError(t, err)
	assert.Equal(t, 3, r.Ticks)
	assert.Equal(t, 6*size, r.Torn)

	binary.LittleEndian.PutUint32(data[32:], 1)
	binary.LittleEndian.PutUint64(data[48:], 0)
	binary.LittleEndian.PutUint32(data[36:], 0)
	putSum(data[:recordHeader])
	_, err = parseReplay(data)
	assert.EqualError(t, err, "byte 32: it begins with tick 1, but without a state")
}

func TestRecords(t *testing.T) {
	dir := t.TempDir()
	for _, of := range [][2]uint32{{63, 0}, {7, 10000}, {7, 9999}, {0, 2}} {
		h := recordOf(1)
		h.Room, h.Epoch = of[0], of[1]
		createRecord(t, dir, h, nil)
	}
	for _, other := range []string{"room-07-0003.inputs.new", "room-7-3.inputs", "frogs.inputs",
		"room-01-0001.inputs~", "scores"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, other), nil, 0o644))
	}
	list, err := Records(dir)
	require.NoError(t, err)
	name := func(file string) string { return filepath.Join(dir, file) }
	assert.Equal(t, []RecordFile{{0, 2, name("room-00-0002.inputs")},
		{7, 9999, name("room-07-9999.inputs")}, {7, 10000, name("room-07-10000.inputs")},
		{63, 0, name("room-63-0000.inputs")}}, list)
	for room, want := range map[uint32]uint32{0: 3, 1: 0, 7: 10001, 63: 1} {
		epoch, err := NextEpoch(dir, room)
		require.NoError(t, err)
		assert.Equal(t, want, epoch, "room %d", room)
	}
	epoch, err := NextEpoch(name("absent"), 0)
	require.NoError(t, err)
	assert.Zero(t, epoch)
	if runtime.GOOS != "windows" { // Wine lists a file as an empty folder
		_, err = NextEpoch(name("scores"), 0)
		assert.Error(t, err, "a file is no folder")
	}
}

// Files of version 1, whose headers had no sum of the map, are refused.
func TestOldVersions(t *testing.T) {
	dir := t.TempDir()
	_, data := recorded(t, dir, recordOf(2), nil)
	data[8] = 1
	putSum(data[:recordHeader])
	_, err := parseReplay(data)
	assert.EqualError(t, err, "byte 8: it is of version 1; this program reads 2")

	h := head()
	save := make([]byte, saveHeader)
	h.put(save, 0, nil)
	save[8] = 1
	putSum(save)
	_, _, _, err = parseSave(save, 0)
	assert.EqualError(t, err, "byte 8: it is of version 1; this program reads 2")
}
