package disk

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func openScoresOf(t *testing.T, name string) *Scores {
	t.Helper()
	s, cut, err := OpenScores(name)
	require.NoError(t, err)
	require.Zero(t, cut)
	t.Cleanup(func() { s.Close() })
	return s
}

func someScores(n int) []Score {
	list := make([]Score, n)
	for i := range list {
		k := uint32(i)
		list[i] = Score{Seconds: -1 << 40, Room: k, Player: 0xffff - k, Epoch: k + 1, Ticks: k + 2,
			Caught: k + 3, Deaths: k + 4, Exits: 1<<32 - 1 - k, Map: [8]byte{'M', 'A', 'P', '3', '1'}}
		copy(list[i].Name[:], "sixteen bytes ok")
	}
	return list
}

func scoresFile(list []Score) []byte {
	data := make([]byte, len(list)*scoreSize)
	for i := range list {
		list[i].put(data[i*scoreSize:][:scoreSize])
	}
	return data
}

func TestScores(t *testing.T) {
	name, list := filepath.Join(t.TempDir(), "scores"), someScores(200)
	s := openScoresOf(t, name)
	require.NoError(t, s.Append(list[:3]))
	require.NoError(t, s.Append(nil))
	require.NoError(t, s.Sync())
	require.NoError(t, s.Close())
	s = openScoresOf(t, name)
	require.NoError(t, s.Append(list[3:]), "more than are written at once")
	got, torn, err := readScores(name)
	require.NoError(t, err)
	assert.Zero(t, torn)
	assert.Equal(t, list, got)
}

// A file cut off at any byte has its whole scores, and further scores are appended after these.
func TestTornScores(t *testing.T) {
	name, list := filepath.Join(t.TempDir(), "scores"), someScores(4)
	data := scoresFile(list)
	for n := range len(data) + 1 {
		_, torn, err := parseScores(data[:n])
		require.NoError(t, err)
		require.Equal(t, n%scoreSize, torn)
		if n%21 != 0 && n%scoreSize != 0 { // a disk is slow
			continue
		}
		require.NoError(t, os.WriteFile(name, data[:n], 0o644))
		s, cut, err := OpenScores(name)
		require.NoError(t, err)
		require.Equal(t, torn, cut)
		require.NoError(t, s.Append(list[:1]))
		require.NoError(t, s.Close())
		got, torn, err := readScores(name)
		require.NoError(t, err)
		require.Zero(t, torn)
		require.Equal(t, append(list[:n/scoreSize:n/scoreSize], list[0]), got)
	}
}

func TestDamagedScores(t *testing.T) {
	data := scoresFile(someScores(3))
	for bit := range 8 * len(data) {
		data[bit/8] ^= 1 << (bit % 8)
		list, torn, err := parseScores(data)
		if bit/8 < 2*scoreSize {
			require.ErrorContains(t, err, "byte ", "bit %d", bit)
		} else {
			require.NoError(t, err)
			require.Equal(t, scoreSize, torn)
			require.Len(t, list, 2)
		}
		data[bit/8] ^= 1 << (bit % 8)
	}
	data[scoreSize+20]++
	list, _, err := parseScores(data)
	assert.EqualError(t, err, "byte 64: a score is damaged, and others after it are not")
	assert.Len(t, list, 2)
}

// A file of another kind is never cut.
func TestForeignScores(t *testing.T) {
	for line, data := range map[string][]byte{
		`byte 0: it starts with "root", not with "FSC1"`:                 []byte("root:x:0:0"),
		`byte 0: it starts with "x", not with "FSC1"`:                    []byte("x"),
		"byte 0: more than 65536 bytes from here on hold no whole score": make([]byte, 70000),
		"byte 64: more than 65536 bytes from here on hold no whole score": append(scoresFile(someScores(1)),
			bytes.Repeat([]byte("FSC1"), 20000)...),
	} {
		name := filepath.Join(t.TempDir(), "file")
		require.NoError(t, os.WriteFile(name, data, 0o644))
		_, _, err := OpenScores(name)
		assert.EqualError(t, err, name+": "+line)
		after, err := os.ReadFile(name)
		require.NoError(t, err)
		assert.True(t, bytes.Equal(data, after), line)
	}
}

// After a failed Append the file has none of the scores, even in part, and a retry appends them.
func TestScoresOnFullDisk(t *testing.T) {
	name, list := filepath.Join(t.TempDir(), "scores"), someScores(5)
	s := openScoresOf(t, name)
	require.NoError(t, s.Append(list[:2]))
	good := s.file
	other := filepath.Join(t.TempDir(), "full")
	full(t, other)
	var err error
	s.file, err = os.OpenFile(other, os.O_WRONLY, 0)
	require.NoError(t, err)
	assert.ErrorContains(t, s.Append(list[2:]), "full"+noSpace)
	require.NoError(t, s.file.Close())
	s.file = good
	require.NoError(t, s.Append(list[2:]))
	got, _, err := readScores(name)
	require.NoError(t, err)
	assert.Equal(t, list, got)
}

func parseScores(data []byte) (list []Score, torn int, err error) {
	_, torn, err = scan(bytes.NewReader(data), func(c *Score) error {
		list = append(list, *c)
		return nil
	})
	return list, torn, err
}

func readScores(name string) (list []Score, torn int, err error) {
	torn, err = ReadScores(name, func(c *Score) error { list = append(list, *c); return nil })
	return list, torn, err
}
