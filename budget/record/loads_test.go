package record_test

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/budgettest"
	"github.com/upfront-mem/upfront/budget/record"
	"github.com/upfront-mem/upfront/scope"
)

// TestLoadsThatFail: a recording has a failed load up to its failure.
func TestLoadsThatFail(t *testing.T) {
	for name, end := range map[string]func(s scope.Scope) error{
		"an error": func(scope.Scope) error { return errLoader },
		"a full":   func(s scope.Scope) error { octets.Slice(s, 1<<20); return nil },
		"a panic":  func(scope.Scope) error { panic(errLoader) },
		"Goexit":   func(scope.Scope) error { runtime.Goexit(); return nil },
		"a panic after a full": func(s scope.Scope) error {
			octets.TrySlice(s, 1<<20)
			panic(errLoader)
		},
		"finalizers that fail, panic and end the goroutine": func(s scope.Scope) error {
			s.Defer(func() { panic(errLoader) })
			s.Defer(func() { runtime.Goexit() })
			scope.Object[frog](func(*frog) error { return errLoader }).New(s)
			return errLoader
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, was := holds(t, func(b *budget.Budget, _ *record.Recording) {
				done := make(chan struct{})
				go func() {
					defer close(done)
					defer func() { _ = recover() }()
					_, _ = budget.Load(ctx, b.Region("level"), func(s scope.Scope) (*int, error) {
						octets.Slice(s, 1000)
						s.Temp(1000)
						s.Open("left open")
						return nil, end(s.Open("inner"))
					})
				}()
				<-done
				load(t, b.Region("level"), func(s scope.Scope) { octets.Slice(s, 10) })
			})
			assert.Greater(t, was.Arenas[1].Peak, uint64(2000))
		})
	}
}

// timeless removes times and places.
var timeless = regexp.MustCompile(`\n\t.*|; region \S+ was last emptied .* ago, by a .*`)

// TestRecordedIsTheSame: a recorded program gets the same results, addresses, errors and
// finalizers.
func TestRecordedIsTheSame(t *testing.T) {
	program := func(b *budget.Budget) (seen []string) {
		see := func(text string) { seen = append(seen, text) }
		at := func(s scope.Scope) string { return fmt.Sprint(s.Free()) }
		body := func(s scope.Scope) error {
			see(at(s))
			s.Defer(func() { see("first") })
			inner := s.Open("inner")
			inner.Defer(func() { see("second") })
			return inner.Close()
		}
		for _, do := range []func(s scope.Scope) error{body,
			func(s scope.Scope) error {
				s.Defer(func() { see("runs"); panic("finalizer") })
				temp := s.Temp(100)
				temp.Defer(func() { see("temp") })
				octets.Slice(temp, 200)
				return nil
			},
			func(s scope.Scope) error {
				inner := s.Open("inner")
				octets.TryNew(s)
				see(errors.Join(inner.Close(), s.Err()).Error())
				octets.TrySlice(s, 1<<30)
				see(at(s))
				return nil
			},
			func(s scope.Scope) error {
				_, err := objects.Make(s, func(*frog) error {
					s.Defer(func() { see("part") })
					s.Open("left")
					return errLoader
				})
				see(err.Error() + at(s))
				return s.Open("closed").Close()
			}} {
			func() {
				defer func() {
					if v := recover(); v != nil {
						see(v.(error).Error())
					}
				}()
				see(errors.Join(b.Scratch(0, 0).Do("work", do), b.Frame().Do("work", do), b.NextFrame()).Error())
			}()
			_, err := budget.Load(ctx, b.Region("level"), func(s scope.Scope) (*int, error) { return nil, do(s) })
			see(errors.Join(err, b.Region("level").Rewind(ctx), errLoader).Error())
		}
		s := b.Scratch(1, 0).Open("work")
		see(errors.Join(s.Close(), s.Close()).Error())
		b.Frame().Open("left open")
		see(errors.Join(b.NextFrame(), b.Close()).Error())
		return seen
	}
	plain := open(t, game())
	want := program(plain)
	b := open(t, game())
	r, err := record.Start(b, &bytes.Buffer{})
	require.NoError(t, err)
	got := program(b)
	require.NoError(t, r.Close())
	require.Equal(t, len(want), len(got))
	for i := range want {
		assert.Equal(t, timeless.ReplaceAllString(want[i], ""), timeless.ReplaceAllString(got[i], ""))
	}
	was, is := plain.Report(), b.Report()
	for i, a := range was.Arenas {
		other := is.Arenas[i]
		a.Sites, other.Sites = nil, nil
		assert.Equal(t, timeless.ReplaceAllString(a.LastFull, ""), timeless.ReplaceAllString(other.LastFull, ""))
		a.LastFull, other.LastFull = "", ""
		assert.Equal(t, a, other)
	}
	assert.Equal(t, was.Leaks, is.Leaks)
}

// TestEachRequestRefused: with each request refused in turn, the replay has the same peaks.
func TestEachRequestRefused(t *testing.T) {
	plan := budget.Plan{Name: "small", Regions: []budget.RegionPlan{{Name: "level", Size: 2000}},
		Scratch: budget.ScratchPlan{Workers: 1, Each: 1, Size: 1000}}
	type run struct {
		to     bytes.Buffer
		report budget.Report
	}
	var runs []*run
	budgettest.FailEach(t, plan, func(b *budget.Budget) error {
		it := &run{}
		runs = append(runs, it)
		r, err := record.Start(b, &it.to)
		require.NoError(t, err)
		_, err = budget.Load(ctx, b.Region("level"), func(s scope.Scope) (*int, error) {
			octets.Slice(s, 9)
			frogs.Pool(s, 3)
			_, err := objects.Make(s, func(*frog) error {
				s.Defer(func() {})
				s.Temp(100).Temp(10)
				frogs.New(s)
				return nil
			})
			list := frogs.Build(s)
			list.Push(frog{})
			list.Done()
			return nil, errors.Join(err, scope.Label(s, "label", func() error {
				return b.Scratch(0, 0).Do("work", func(s scope.Scope) error {
					frogs.Append(s, frogs.Slice(s, 2), frog{})
					return nil
				})
			}))
		})
		it.report = b.Report()
		require.NoError(t, r.Close())
		return err
	})
	assert.Greater(t, len(runs), 20)
	for _, it := range runs {
		again, _, err := record.Replay(it.report.Plan, &it.to)
		require.NoError(t, err)
		assert.Equal(t, it.report.Arenas[0].Peak, again.Arenas[0].Peak)
		assert.Equal(t, beside(it.report)[0].Peak, beside(again)[0].Peak)
	}
}
