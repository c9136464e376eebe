package save_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/container"
)

// TestChangesOfVersions: a file gets the changes of later versions only, in one step.
func TestChangesOfVersions(t *testing.T) {
	type pond struct{ A, B uint8 }
	file := func(version uint32) []byte {
		return older(t, func(p *program, root *pond) {
			if root.A = 7; version != 0 {
				p.state.Version(version)
			}
		})
	}
	var calls []int
	now := func(p *program, _ *pond) {
		p.state.Version(1, save.Renamed("save_test.pond.A", "C"), save.Renamed("save_test.pond.B", "A"),
			save.Converted(func(struct{}, *pond) { calls = append(calls, 1) }))
		p.state.Version(2, save.Renamed("save_test.pond.C", "B"),
			save.Converted(func(struct{}, *pond) { calls = append(calls, 2) }))
	}
	for version, want := range []struct {
		pond
		calls []int
	}{{pond{0, 7}, []int{1, 2}}, {pond{7, 0}, []int{2}}, {pond{7, 0}, nil}} {
		calls = nil
		require.NoError(t, newer(t, now, func(_ *program, p *pond) { *p = want.pond })(file(uint32(version))))
		assert.Equal(t, want.calls, calls, version)
	}
	assert.ErrorContains(t, newer(t, now, nil)(file(3)), "the version of region level: 2 here, and 3 in the file, "+
		"which is newer")
}

// TestConvertHostilePools: no word of a pool in a file is believed.
func TestConvertHostilePools(t *testing.T) {
	p, _ := loadProgram(t, func(p *program, _ *uint64) {
		pool := frogMaker.HandlePool(p.scope, 8)
		var all [5]arena.Handle[frog]
		for i := range all {
			_, all[i] = pool.Get()
		}
		for _, h := range all {
			pool.Put(h)
		}
		pool.Get()
	})
	require.NoError(t, p.ring.Take(1))
	file, c := written(t, p.ring, 1), save.ControlOf(p.ring)
	image, pool := len(file)-p.ring.Size(), c.Pools[0]
	now, _ := loadProgram(t, func(p *program, _ *uint64) { p.state.Version(1); frogMaker.HandlePool(p.scope, 9) })
	require.NoError(t, readAgain(now.ring, file))
	for want, change := range map[string]func(b []byte){
		"8 free and 0 retired by its words":             func(b []byte) { b[c.Words[0]]++ },
		"16777223 free":                                 func(b []byte) { b[c.Words[0]+3]++ },
		"7 free and 1 retired by its words":             func(b []byte) { b[c.Words[0]+4]++ },
		"its list of free chunks has chunk 200, which ": func(b []byte) { b[pool.Numbers+4*6] = 200 },
		"in the place of chunk 7, which was never used": func(b []byte) { b[pool.Numbers] = 200 },
		"1 chunks of unknown state":                     func(b []byte) { b[pool.States] = 99 },
		"generation 0x0 of chunk 3":                     func(b []byte) { clear(b[pool.Generations+12:][:4]) },
	} {
		hostile := bytes.Clone(file)
		change(hostile[image:])
		binary.LittleEndian.PutUint64(hostile[24:], 2)
		err := readAgain(now.ring, resum(hostile))
		assert.ErrorContains(t, err, "the pool of save_test.frog: ")
		assert.ErrorContains(t, err, want)
		assert.False(t, now.ring.Has(2))
	}
}

// TestConvertIsChecked: a converted snapshot is checked as any from outside, by the program's
// functions also.
func TestConvertIsChecked(t *testing.T) {
	file := older(t, func(p *program, n *uint32) {
		m := container.NewMap(p.scope, countMaker, countMaker, 4)
		m.Set(1, 1)
		m.Set(2, 2)
		*n = 7
	})
	makes := func(p *program) {
		container.NewMap(p.scope, scope.Plain[key](), countMaker, 4)
	}
	p, _ := loadProgram(t, func(p *program, n *uint64) {
		p.state.Version(1, save.Dropped("container.Map[int32,int32]"))
		p.state.Verify(func(v save.View) error {
			if *save.At(v, n) == 7 {
				return errors.New("a seven")
			}
			return nil
		})
		makes(p)
	})
	assert.ErrorContains(t, readAgain(p.ring, file), "the converted snapshot is a state that this program can't "+
		"produce: region level, snapshot 1: a seven")
	named := older(t, func(p *program, _ *uint64) {
		p.state.Name("counts")
		m := container.NewMap(p.scope, countMaker, countMaker, 4)
		m.Set(1, 1)
		m.Set(2, 2)
	})
	p, _ = loadProgram(t, func(p *program, _ *uint64) {
		p.state.Version(1, save.Converted(func(old int32, now *key) { *now = key(old / 4) }))
		p.state.Name("counts")
		makes(p)
	})
	assert.ErrorContains(t, readAgain(p.ring, named), "no cell leads to entry 1 by its key")
}

type key int32

// TestConvertLongKeys: a key that is too long for the StringMap here is refused.
func TestConvertLongKeys(t *testing.T) {
	file := older(t, func(p *program, _ *uint64) {
		m := container.NewStringMap(p.scope, countMaker, 4, 10)
		require.NoError(t, m.Set("ada lovelace"[:9], 1))
	})
	for k, want := range map[int]string{9: "", 8: "a key of 9 bytes, of 10 at most in the file, and 8 here"} {
		var m container.StringMap[int32]
		p, _ := loadProgram(t, func(p *program, _ *uint64) {
			p.state.Version(1)
			m = container.NewStringMap(p.scope, countMaker, 5, k)
		})
		if err := readAgain(p.ring, file); want != "" {
			assert.ErrorContains(t, err, want)
		} else {
			require.NoError(t, err)
			require.NoError(t, p.ring.Restore(background, 1))
			assert.EqualValues(t, 1, *m.Get("ada lovel"))
		}
	}
}
