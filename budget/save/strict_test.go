//go:build checked

package save_test

import (
	"bytes"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
)

var leak *[8]int64

// TestStrict: a ring's files and differences don't count as allocations of play; the program's own
// do.
func TestStrict(t *testing.T) {
	plan := pondPlan()
	plan.Frame = budget.FramePlan{Buffers: 2, Size: 64 * budget.KiB}
	b := open(t, plan)
	p, other := newPond(t, b, "level", 3), bytes.Buffer{}
	for n := range uint64(2) {
		p.step(n)
		require.NoError(t, p.ring.Take(n))
	}
	var err error
	var from bytes.Reader
	file := make([]byte, 0, budget.MiB)
	turn := func() (said any) {
		defer func() { said = recover() }()
		err = b.NextFrame()
		return nil
	}
	// encoding/json learns the types of a description
	warm := newPond(t, open(t, pondPlan()), "level", 3)
	require.NoError(t, warm.ring.Take(0))
	require.NoError(t, warm.ring.Write(io.Discard, 0))
	require.NoError(t, b.SealStrict())
	require.Nil(t, turn())
	file, err = p.ring.AppendFile(file, 1)
	first, said := err, turn()
	require.NoError(t, first)
	require.Nil(t, said, "the first file describes the types")
	for what, call := range map[string]func(){
		"AppendFile": func() { file, err = p.ring.AppendFile(file[:0], 1) },
		"Write":      func() { err = p.ring.Write(io.Discard, 1) },
		"Diff":       func() { _, _, err = p.ring.Diff(0, 1) },
		"Read":       func() { from.Reset(other.Bytes()); _, err = p.ring.Read(&from) },
	} {
		other.Reset()
		require.NoError(t, p.ring.Write(&other, 1))
		turn()
		turn()
		call()
		failed, said := err, turn()
		require.NoError(t, failed, what)
		require.Nil(t, said, what)
		turn()
		leak = new([8]int64)
		call()
		said = turn()
		assert.Contains(t, said, "Strict: 1 Go allocation, 64 bytes", what)
	}
}
