package save_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget/save"
)

// zeros is an endless reader of zeros.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// allocated returns the bytes of Go heap that fn allocates.
func allocated(fn func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	fn()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// claims returns a file with other sizes in its header, a correct checksum, and then other bytes.
func claims(file []byte, layout, image uint64, then io.Reader) io.Reader {
	head := bytes.Clone(file[:56])
	binary.LittleEndian.PutUint64(head[8:], layout)
	binary.LittleEndian.PutUint64(head[16:], image)
	binary.LittleEndian.PutUint64(head[48:], uint64(save.SumOf(head[:48])))
	return io.MultiReader(bytes.NewReader(head), then)
}

// TestSizesBeforeMemory: the size in a file's header takes no memory. A ring refuses other sizes
// than its own, and a tool has a bound.
func TestSizesBeforeMemory(t *testing.T) {
	p := newPond(t, open(t, pondPlan()), "level", 2)
	require.NoError(t, p.ring.Take(1))
	file := written(t, p.ring, 1)
	layout, image := binary.LittleEndian.Uint64(file[8:]), uint64(p.ring.Size())
	huge := uint64(min(40e9, math.MaxInt/2))
	for want, test := range map[string]struct {
		file io.Reader
		most uint64
	}{
		"byte 56: it is of another program, plan or data: fingerprint ": {
			claims(file, 16<<20, huge, zeros{}), 1 << 20},
		"byte 56: the description is damaged: ": {claims(file, 16<<20, image, zeros{}), 1 << 20},
		"byte 8: a description of 16777217 bytes: at most 16777216 are read": {
			claims(file, 16<<20+1, image, zeros{}), 1 << 20},
		fmt.Sprintf("byte 16: a snapshot of %d bytes here, and of", huge): {
			claims(file, layout, huge, bytes.NewReader(file[56:])), 1 << 20},
	} {
		taken := allocated(func() {
			_, err := p.ring.Read(test.file)
			assert.ErrorContains(t, err, "save: a file for region level, "+want)
		})
		assert.LessOrEqual(t, taken, test.most, want)
	}
	assert.True(t, p.ring.Has(1))
}

// TestConvertSizes: nor do they if the ring converts files.
func TestConvertSizes(t *testing.T) {
	p, _ := loadProgram(t, func(p *program, _ *uint64) { p.state.Version(1) })
	text := `{"plan":"pond","parts":[{"region":"level","mark":0,"size":%d,"root":"uint64"}],"types":[]}`
	for want, test := range map[string]struct {
		file io.Reader
		most uint64
	}{
		"byte 8: its types differ, and its description has 16777216 bytes: at most 1048576 are converted": {
			claims(written(t, taken(t, p.ring), 1), 16<<20, 40_000, zeros{}), 1 << 20},
		"byte 16: a snapshot of 1048896 bytes: at most 1048832 are converted into one of 64": {
			described(fmt.Sprintf(text, 1048896), 1048896), 1 << 20},
		"the snapshot is damaged: ": {
			described(fmt.Sprintf(text, 1048832), 1048832), 2 << 20},
	} {
		taken := allocated(func() {
			_, err := p.ring.Read(test.file)
			assert.ErrorContains(t, err, want)
		})
		assert.LessOrEqual(t, taken, test.most, want)
	}
}

func taken(t testing.TB, r *save.Ring) *save.Ring {
	require.NoError(t, r.Take(1))
	return r
}

// TestShowBounds: without a ring the snapshot's size has a bound, which the error names. The number
// of values in the description has a bound by its bytes.
func TestShowBounds(t *testing.T) {
	const size = 1<<30 + 64
	large := `{"plan":"p","parts":[{"region":"r","mark":0,"size":1073741888,"root":"int64"}],"types":[]}`
	short := `{"plan":"p","parts":[` + strings.Repeat("{},", 1000) + `{}],"types":[]}`
	for want, text := range map[string]string{
		"save: a file, byte 16: a snapshot of 1073741888 bytes: without a ring at most 1073741824 " +
			"are read; use Ring.Read": large,
		"save: a file, byte 56: the description has 1002 commas in 3036 bytes: at most one for each 8 " +
			"is read": short,
	} {
		one, other := described(text, size), described(text, size)
		taken := allocated(func() {
			err := save.Show(io.Discard, one)
			assert.ErrorContains(t, err, want)
			_, _, err = save.DiffFiles(other, nil, nil)
			assert.ErrorContains(t, err, "A: "+want)
		})
		assert.LessOrEqual(t, taken, uint64(1<<20), want)
	}
}

// described returns a file with that description, correct checksums and endless zeros.
func described(text string, image uint64) io.Reader {
	head := append([]byte("upsave1\n"), make([]byte, 48)...)
	binary.LittleEndian.PutUint64(head[32:], save.FingerprintOf(text))
	binary.LittleEndian.PutUint32(head[40:], save.SumOf([]byte(text)))
	return claims(head, uint64(len(text)), image,
		io.MultiReader(strings.NewReader(text), zeros{}))
}
