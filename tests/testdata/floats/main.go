// Command floats prints hashes of states and of results of package math. TestFloats compares them
// between targets. A line with //! must be reported by upfront-vet.
package main

import (
	"context"
	"fmt"
	"log"
	"math"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/scope"
)

type ball struct{ At, Speed float64 }

var balls = scope.Plain[ball]()

// fused moves the ball for 350 ticks.
func (b *ball) fused() {
	for range 350 {
		b.Speed = b.Speed*0.98 + 0.1 //!
		b.At += b.Speed * 0.0285     //!
	}
}

// converted is fused with the conversions that upfront-vet suggests.
func (b *ball) converted() {
	for range 350 {
		b.Speed = float64(b.Speed*0.98) + 0.1
		b.At += float64(b.Speed * 0.0285)
	}
}

// zero is a variable, so that the processor divides.
var zero = 0.0

// hash returns the hash of a state, and the field that is a NaN.
func hash(set func(*ball)) (hash uint64, nan string, err error) {
	b, err := budget.Open(budget.Plan{Name: "s", Regions: []budget.RegionPlan{
		{Name: "room", Size: 64 * budget.KiB, State: true}}})
	if err != nil {
		return 0, "", err
	}
	defer b.Close()
	var state *save.State
	var one *ball
	var ring *save.Ring
	if _, err = budget.Load(context.Background(), b.Region("room"), func(s scope.Scope) (*ball, error) {
		state, one = save.Begin(b.Region("room"), s, balls)
		ring = save.NewRing(s, 4, state)
		return one, nil
	}); err != nil {
		return 0, "", err
	}
	one.At, one.Speed = 0.1, 1.3
	set(one)
	if err = ring.Take(1); err != nil {
		return 0, "", err
	}
	if hash, err = ring.Hash(1); err != nil {
		return 0, "", err
	}
	nan, err = state.NaN()
	return hash, nan, err
}

func main() {
	for _, of := range []struct {
		name string
		set  func(*ball)
	}{
		{"fused", (*ball).fused},
		{"converted", (*ball).converted},
		{"nan", func(b *ball) { b.Speed = zero / zero }},
		{"nan", func(b *ball) { b.At = math.Sqrt(zero - 1) }},
		{"nan", func(b *ball) { i := math.Inf(1) + zero; b.At = i - i }},
		{"converted", func(b *ball) { b.At = math.NaN() }}, // a constant
		{"integer", func(b *ball) { b.At = float64(int32(b.At * 1e12)) }},
		{"integer", func(b *ball) { b.At = float64(uint64(-b.Speed)) }},
		{"integer", func(b *ball) { b.At = float64(int64(zero / zero)) }},
	} {
		hash, nan, err := hash(of.set)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s %x %s\n", of.name, hash, nan)
	}
	functions()
}
