package work

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestMeter checks that allocations before Ready aren't garbage, and that later allocations are.
func TestMeter(t *testing.T) {
	var kept []byte
	sum, m, err := Run(func(m *Meter) (uint64, error) {
		kept = make([]byte, 1<<20)
		m.Ready()
		kept = make([]byte, 1<<16)
		for range 2000 {
			m.Start()
			m.Stop()
		}
		m.ticks[7], m.ticks[1500] = time.Hour, time.Minute
		return 5, nil
	})
	require.NoError(t, err)
	assert.Len(t, kept, 1<<16)
	assert.Equal(t, uint64(5), sum)
	assert.InDelta(t, 1<<16, m.Garbage(), 1<<14) // the runtime's own
	assert.Equal(t, 2000, m.Ticks())
	assert.Equal(t, time.Minute, m.Slowest(), "of 2000 ticks, one is slower")
	assert.Zero(t, new(Meter).Slowest())
}

// TestScan reads a block of hand-written lines. Scan skips the fields that the program doesn't
// read.
func TestScan(t *testing.T) {
	block := []byte(`{"user":"frog","item":17,"tags":["a","bc"],"amount":1234,"note":""}` + "\n" +
		`{"user":"newt","item":0,"tags":[],"amount":0,"note":"x"}` + "\n")
	var r Record
	block = r.Scan(block)
	assert.Equal(t, "frog", string(r.User))
	assert.Equal(t, int64(1234), r.Amount)
	assert.Equal(t, [][]byte{[]byte("a"), []byte("bc")}, r.Tags())
	block = r.Scan(block)
	assert.Equal(t, "newt", string(r.User))
	assert.Equal(t, int64(0), r.Amount)
	assert.Empty(t, r.Tags())
	assert.Empty(t, block)
}

// TestInputs checks that the inputs keep the limits of the plans, and allocate nothing.
func TestInputs(t *testing.T) {
	packets := NewPackets()
	require.True(t, packets.Tick())
	kinds := map[byte]int{}
	for b := packets.Next(); b != nil; b = packets.Next() {
		p := Split(b)
		kinds[p.Kind]++
		assert.Equal(t, len(b), 4+len(p.Code)+len(p.Name)+len(p.Text))
		assert.True(t, len(p.Code) > 0 && len(p.Code) <= RoomCodeSize && len(p.Name) <= NameSize &&
			len(p.Text) <= TextSize)
		assert.Equal(t, p.Kind > End, len(p.Name) > 0)
		assert.Equal(t, p.Kind == Chat, len(p.Text) > 0)
	}
	assert.Len(t, kinds, 6)

	var lines Lines
	var r Record
	users, tags, longest := map[string]bool{}, map[string]bool{}, 0
	for range 400 {
		for block := lines.Next(); len(block) > 0; {
			rest := r.Scan(block)
			longest = max(longest, len(block)-len(rest))
			block = rest
			users[string(r.User)] = true
			assert.LessOrEqual(t, len(r.User), KeySize)
			for _, tag := range r.Tags() {
				tags[string(tag)] = true
				assert.LessOrEqual(t, len(tag), KeySize)
			}
		}
	}
	assert.LessOrEqual(t, longest, lineSize)
	assert.LessOrEqual(t, len(users), Users)
	assert.LessOrEqual(t, len(tags), Tags)

	assert.Zero(t, testing.AllocsPerRun(100, func() {
		lines.Next()
		packets.Tick()
		for b := packets.Next(); b != nil; b = packets.Next() {
			Split(b)
		}
	}))
}
