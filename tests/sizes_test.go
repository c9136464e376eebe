package tests

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/upfront-mem/upfront/budget/budgettest"
)

// sized is a parameter of an exported function, or an exported field of an argument, that is a
// number: a size, count, index, alignment, handle or duration. check calls the function with
// numbers around its limits and around those of integers of 32 and 64 bits.
type sized struct {
	name  string // "scope: Maker.Slice n"; "budget: Plan.Size" for a field
	check func(t *testing.T, name string)
}

type integer interface {
	~int | ~int32 | ~int64 | ~uint32 | ~uint64 | ~uintptr
}

// numbers returns a row of a function that takes the numbers from..to. It must refuse each other
// number with an error or a panic that matches the regular expression says, in which # is the
// number.
func numbers[N integer](name string, from, to N, says string, call func(n N) error) sized {
	return chosen(name, []N{from, to}, func(n N) bool { return from <= n && n <= to }, says, call)
}

// all returns a row of a function that takes each number.
func all[N integer](name string, call func(n N) error) sized {
	return chosen(name, nil, func(N) bool { return true }, "-", call)
}

// powers returns a row of a function that takes the powers of two from..to.
func powers[N integer](name string, from, to N, says string, call func(n N) error) sized {
	takes := func(n N) bool { return n&(n-1) == 0 && from <= n && n <= to }
	return chosen(name, []N{from, 3 * from, 2*from - 1, to}, takes, says, call)
}

// fitting returns a row of a function that takes the numbers from `from` on, as many as fit in its
// memory: at most a million.
func fitting[N integer](name string, from N, says string, call func(n N) error) sized {
	return sized{name, func(t *testing.T, name string) {
		least, most := from, N(1<<20)
		for most-least > 1 {
			if half := least + (most-least)/2; called(func() error { return call(half) }) == nil {
				least = half
			} else {
				most = half
			}
		}
		assert.Greater(t, least, from+99, name)
		numbers(name, from, least, says, call).check(t, name)
	}}
}

// largest returns the most bytes, up to 2^40, that a call takes.
func largest(call func(n uint64) error) (n uint64) {
	for step := uint64(1 << 40); step != 0; step /= 2 {
		if called(func() error { return call(n + step) }) == nil {
			n += step
		}
	}
	return n
}

// chosen returns a row of a function that takes some numbers.
func chosen[N integer](name string, limits []N, takes func(n N) bool, says string, call func(n N) error) sized {
	return sized{name, func(t *testing.T, name string) {
		for _, n := range edges(limits) {
			err := called(func() error { return call(n) })
			if takes(n) {
				assert.NoError(t, err, "%s: %d", name, n)
				continue
			}
			want := strings.ReplaceAll(says, "#", regexp.QuoteMeta(fmt.Sprint(n)))
			if assert.Error(t, err, "%s: %d", name, n) {
				assert.Regexp(t, want, err.Error(), "%s: %d", name, n)
			}
			crash, isCrash := errors.AsType[runtime.Error](err)
			assert.False(t, isCrash && !strings.Contains(says, "out of range"), "%s: %d: %v", name, n, crash)
		}
	}}
}

// edges returns the numbers that a row tries, without those that don't fit.
func edges[N integer](limits []N) (list []N) {
	for _, n := range limits {
		list = append(list, n-1, n, n+1)
	}
	for _, n := range []int64{math.MinInt64, -1, 0, 1, 2, 1<<31 - 1, 1 << 31, 1<<32 - 1, 1 << 32, 1<<63 - 1} {
		if m := N(n); int64(m) == n && (n < 0) == (m < 0) {
			list = append(list, m)
		}
	}
	var zero N
	if most := zero - 1; most > 0 { // unsigned
		list = append(list, most, most/2+1)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// called returns the error of a call, or its panic.
func called(call func() error) (err error) {
	defer func() {
		switch v := recover().(type) {
		case nil:
		case error:
			err = v
		default:
			err = fmt.Errorf("%v", v)
		}
	}()
	return call()
}

// TestSizes calls each function with each number. The budget's words are whole afterwards.
func TestSizes(t *testing.T) {
	b := budgettest.Open(t, sizesPlan)
	for _, row := range sizes(t, b) {
		t.Run(row.name, func(t *testing.T) { row.check(t, row.name) })
	}
}
