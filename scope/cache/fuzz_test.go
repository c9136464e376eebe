package cache_test

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/budgettest"
	"github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/cache"
)

// tape is a source of random numbers that a program decides, a byte each. After its end they are a
// generator's.
type tape struct {
	program []byte
	after   *rand.PCG
}

func newTape(program []byte) *tape { return &tape{program, rand.NewPCG(4, 6)} }

func (t *tape) Uint64() uint64 {
	if len(t.program) == 0 {
		return t.after.Uint64()
	}
	b := t.program[0]
	t.program = t.program[1:]
	return uint64(b) * (math.MaxUint64 / 255)
}

// longest is the most bytes of a program.
const longest = 1000

func addPrograms(f *testing.F) {
	f.Add([]byte{0, 0})
	r := rand.New(rand.NewPCG(1, 4))
	for _, size := range []int{30, 300} {
		program := make([]byte, size)
		for i := range program {
			program[i] = byte(r.Uint32())
		}
		program[0], program[1] = byte(size), byte(size/256)
		f.Add(program)
	}
}

// FuzzOf runs programs of operations with a cache of 1 to 12 values, as TestTheModelAgrees does.
func FuzzOf(f *testing.F) {
	addPrograms(f)
	scratch := open(f).Scratch(0, 0)
	f.Fuzz(func(t *testing.T, program []byte) {
		if len(program) < 2 || len(program) > longest {
			return
		}
		ended = nil
		s := scratch.Open("world")
		play(t, s, 1+int(program[0])%12, program[1]%2 == 0, len(program)/3, newTape(program[2:]))
		require.NoError(t, s.Close())
	})
}

// FuzzBytes runs programs of operations with a cache of 8 to 71 KiB, as TestBytesModel does.
func FuzzBytes(f *testing.F) {
	addPrograms(f)
	scratch := open(f).Scratch(0, 0)
	f.Fuzz(func(t *testing.T, program []byte) {
		if len(program) < 2 || len(program) > longest {
			return
		}
		s, size := scratch.Open("world"), (8+int(program[0])%64)<<10
		c := cache.NewBytes(s, size, cache.Options{Shards: int(program[1]) % 3, Entry: 64})
		playBytes(t, c, size, len(program)/4, 3, newTape(program[2:]))
		require.NoError(t, s.Close())
	})
}

// FuzzForged: a file of a state with both caches is refused after any change of its image, or both
// work with it, and leave a state that passes.
func FuzzForged(f *testing.F) {
	const n = 6
	b := budgettest.Open(f, statePlan)
	var of *chunkCache
	var in *cache.Bytes
	var ring *save.Ring
	_, err := budget.Load(background, b.Region("level"), func(s scope.Scope) (*world, error) {
		state, w := save.Begin(b.Region("level"), s, worlds)
		of, in = cache.New(s, places, chunks, n), cache.NewBytes(s, 8<<10, cache.Options{Shards: 2, Entry: 60})
		ring = save.NewRing(s, 4, state)
		return w, nil
	})
	require.NoError(f, err)
	steps(f, of, rand.New(rand.NewPCG(1, 1)), 200)
	getOrSet(f, in, rand.New(rand.NewPCG(1, 1)), 200)
	require.NoError(f, ring.Take(1))
	good := fileOf(f, ring, 1)
	image := imageIn(good)
	_, err = ring.Read(bytes.NewReader(sealed(bytes.Clone(good))))
	require.NoError(f, err, "the sums are correct")
	for _, part := range [][]byte{cache.BytesOf(of), in.Raw()} {
		from := bytes.Index(good[image:], part)
		require.GreaterOrEqual(f, from, 0)
		for _, at := range []int{0, 8, 16, 24, 40, 100} {
			for _, change := range []byte{1, 128, 255} {
				f.Add(append(binary.LittleEndian.AppendUint16(nil, uint16(from+at)), change))
			}
		}
	}
	f.Fuzz(func(t *testing.T, program []byte) {
		forged := bytes.Clone(good)
		for ; len(program) >= 3; program = program[3:] {
			forged[image+int(binary.LittleEndian.Uint16(program))%(len(good)-image)] ^= program[2]
		}
		binary.LittleEndian.PutUint64(forged[24:], 3)
		number, err := ring.Read(bytes.NewReader(sealed(forged)))
		if err != nil {
			return
		}
		require.NoError(t, ring.Restore(background, number))
		steps(t, of, rand.New(rand.NewPCG(2, 2)), 100)
		require.LessOrEqual(t, of.Len(), n)
		getOrSet(t, in, rand.New(rand.NewPCG(2, 2)), 200)
		require.NoError(t, in.Walk())
		require.NoError(t, walk(b))
		require.NoError(t, ring.Take(2))
		left := fileOf(t, ring, 2)
		_, err = ring.Read(bytes.NewReader(left))
		require.NoError(t, err)
		require.NoError(t, ring.Restore(background, 1))
	})
}

func fileOf(t testing.TB, ring *save.Ring, number uint64) []byte {
	var file bytes.Buffer
	require.NoError(t, ring.Write(&file, number))
	return file.Bytes()
}

// imageIn returns the offset of the image in a file of package save.
func imageIn(file []byte) int { return fileHeader + int(binary.LittleEndian.Uint64(file[8:])) }

// fileHeader is the size of a file's header, whose words at 40 and 48 have the sums.
const fileHeader = 56

// sealed returns a file with correct sums of its image and header.
func sealed(file []byte) []byte {
	castagnoli := crc32.MakeTable(crc32.Castagnoli)
	binary.LittleEndian.PutUint32(file[44:], crc32.Checksum(file[imageIn(file):], castagnoli))
	binary.LittleEndian.PutUint64(file[48:], uint64(crc32.Checksum(file[:48], castagnoli)))
	return file
}
