package save_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget/save"
)

// Mood has enumerators.
type Mood uint8

// TestCheckpointThatDoesNotConvert: if a new program can't convert a checkpoint, the error names
// the field, the file is as before, and the old program goes on from it. So is it if the new
// program has more slots.
func TestCheckpointThatDoesNotConvert(t *testing.T) {
	type Frog struct {
		Age  uint16
		Mood Mood
		_    [5]byte
	}
	moods := map[string]Mood{"Calm": 0, "Angry": 1, "Asleep": 2}
	name := filepath.Join(t.TempDir(), "pond")
	old, frog := loadProgram(t, func(p *program, _ *Frog) { save.Enum(p.state, moods) })
	c := checkpoints(t, name, checkpointPlan)
	mine := attach(t, c, 0, old.ring)
	require.NoError(t, mine.Write(0, nil)) // this one converts, but Read doesn't go back to it
	*frog = Frog{Age: 7, Mood: 2}
	require.NoError(t, mine.Write(1, []byte("lobby")))
	require.NoError(t, c.Close())

	larger := checkpointPlan
	larger.Slots, larger.Size = 5, 80<<10
	for text, load := range unconvertible(t, moods) {
		next := load()
		for _, plan := range []save.CheckpointPlan{checkpointPlan, larger} {
			c := checkpoints(t, name, plan)
			mine := attach(t, c, 0, next.ring)
			before, err := os.ReadFile(name)
			require.NoError(t, err)
			assert.ErrorContains(t, readOrPanic(mine), text)
			after, err := os.ReadFile(name)
			require.NoError(t, err)
			assert.True(t, bytes.Equal(before, after), text)
			assert.False(t, next.ring.Has(0) || next.ring.Has(1))
			require.NoError(t, c.Close())

			c = checkpoints(t, name, checkpointPlan)
			*frog = Frog{}
			number, own, err := attach(t, c, 0, old.ring).Restore(background)
			require.NoError(t, err)
			assert.EqualValues(t, 1, number)
			assert.Equal(t, "lobby", string(own))
			assert.Equal(t, Frog{Age: 7, Mood: 2}, *frog)
			require.NoError(t, c.Close())
		}
	}
}

func readOrPanic(p *save.Checkpoint) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("a panic: %v", r)
		}
	}()
	_, _, err = p.Restore(background)
	if !errors.Is(err, save.ErrRefused) {
		return fmt.Errorf("it isn't refused: %w", err)
	}
	return err
}

// unconvertible returns programs that can't read the state above, each with a part of its error.
func unconvertible(t *testing.T, moods map[string]Mood) map[string]func() *program {
	type Frog struct {
		Speed uint64
		Age   uint8
		Mood  Mood
		_     [6]byte
	}
	type age struct{ Age uint16 }
	narrows := func(old age, f *Frog) { f.Age = uint8(old.Age) }
	load := func(more func(p *program, f *Frog), changes ...save.Change) func() *program {
		return func() *program {
			p, _ := loadProgram(t, func(p *program, f *Frog) {
				p.state.Version(1, changes...)
				more(p, f)
			})
			return p
		}
	}
	all := func(p *program, _ *Frog) { save.Enum(p.state, moods) }
	return map[string]func() *program{
		"save_test.Frog.Age (uint8 here, and uint16 in the file): narrower": load(all),
		"Frog.Mood: 2 is no enumerator of save_test.Mood that is here": load(func(p *program, _ *Frog) {
			save.Enum(p.state, map[string]Mood{"Calm": 0, "Angry": 1})
		}, save.Converted(narrows), save.Dropped("save_test.Mood.Asleep")),
		"a panic: an old frog": load(all, save.Converted(func(age, *Frog) { panic("an old frog") })),
		"a frog of 7": load(func(p *program, f *Frog) {
			all(p, f)
			p.state.Verify(func(v save.View) error {
				if age := save.At(v, f).Age; age != 0 {
					return fmt.Errorf("a frog of %d", age)
				}
				return nil
			})
		}, save.Converted(narrows)),
	}
}
