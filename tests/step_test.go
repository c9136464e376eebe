package tests

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/upfront-mem/upfront/tests/step"
)

// said is a test that keeps its first end.
type said struct{ end string }

func (s *said) ends(how string) {
	if s.end == "" {
		s.end = how
	}
}

func (s *said) Helper()           {}
func (s *said) Skip(args ...any)  { s.ends("skip: " + fmt.Sprint(args...)) }
func (s *said) Fatal(args ...any) { s.ends("fatal: " + fmt.Sprint(args...)) }

func TestSteps(t *testing.T) {
	for name, want := range map[string]step.Step{"": step.Test, "test": step.Test, "check": step.Check,
		"gate": step.Gate,
		"soak": step.Soak} {
		t.Setenv(step.Variable, name)
		assert.Equal(t, want, step.Now())
		assert.Equal(t, []int{1, 2, 2, 3}[want], step.Pick(1, 2, 3))
		for s := step.Test; s <= step.Soak; s++ {
			var told said
			step.Needs(&told, s)
			if s > want {
				assert.Equal(t, "skip: make "+s.String()+" runs it", told.end)
			} else {
				assert.Empty(t, told.end)
			}
		}
	}
	t.Setenv(step.Variable, "chekc")
	assert.PanicsWithValue(t, "UPFRONT_STEP=chekc: want test, check, gate or soak", func() { step.Now() })
}

func TestTime(t *testing.T) {
	t.Setenv(step.TimeVariable, "")
	assert.Zero(t, step.Time())
	t.Setenv(step.TimeVariable, "1m")
	assert.Equal(t, time.Minute, step.Time())
	t.Setenv(step.TimeVariable, "1")
	assert.PanicsWithValue(t, "UPFRONT_TIME=1: want a duration, such as 1m", func() { step.Time() })
}

func TestLacks(t *testing.T) {
	var told said
	t.Setenv("REQUIRE_ALL", "")
	step.Lacks(&told, "strace", "strace")
	assert.Equal(t, "skip: "+step.Unproven+"strace is missing; Debian's package strace brings it", told.end)
	t.Setenv("REQUIRE_ALL", "1")
	told = said{}
	step.Lacks(&told, "strace", "strace")
	assert.Equal(t, "fatal: REQUIRE_ALL is set, and strace is missing; Debian's package strace brings it, and make "+
		"deps installs it", told.end)
	told = said{}
	step.Lacks(&told, "a second processor", "")
	assert.Equal(t, "fatal: REQUIRE_ALL is set, and a second processor is missing", told.end)
}
