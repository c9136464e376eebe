package scope_test

import (
	"math/rand/v2"
)

// modelProgram is what a seed makes.
type modelProgram struct {
	seed   uint64
	region bool // it runs as the load of a region
	temps  bool // it makes temporaries
	root   modelStep
	fins   []modelFinalizer // by number; 0 is nobody's
}

// modelStep is an operation.
type modelStep struct {
	kind stepKind
	id   int // of its finalizer, or the first of them
	n    int // bytes, elements, or which
	temp bool
	try  bool
	end  modelEnding // of the body
	body []modelStep
}

type stepKind int

const (
	stepPlain stepKind = iota
	stepObject
	stepObjects
	stepPool
	stepObjectPool
	stepOwn
	stepDefer
	stepHold
	stepC
	stepCancel
	stepCloseNow
	stepMisuse
	stepLeaves // those before have no body

	stepMake
	stepOpen
	stepLeaveOpen
	stepDo
	stepAccount
)

type modelEnding int

const (
	endReturns modelEnding = iota
	endError
	endPanic
	endGoexit
)

// newModelProgram makes the program of a seed.
func newModelProgram(seed uint64) *modelProgram {
	p := &modelProgram{seed: seed, region: seed%2 == 1, temps: seed%3 == 2, fins: make([]modelFinalizer, 1)}
	g := &modelGenerator{Rand: rand.New(rand.NewPCG(seed, 4)), p: p, left: 40}
	for g.left > 0 {
		p.root.body = append(p.root.body, g.body(0)...)
	}
	return p
}

type modelGenerator struct {
	*rand.Rand
	p    *modelProgram
	left int  // steps
	temp bool // inside a constructor of a temporary
}

func (g *modelGenerator) body(depth int) (list []modelStep) {
	for range 1 + g.IntN(6) {
		if g.left--; g.left >= 0 {
			list = append(list, g.step(depth))
		}
	}
	return list
}

func (g *modelGenerator) step(depth int) modelStep {
	s := modelStep{kind: stepKind(g.IntN(int(stepLeaves))), n: g.IntN(40), try: g.IntN(3) == 0, temp: g.temp || g.p.temps && g.IntN(3) == 0}
	if !g.temp && depth < 7 && g.IntN(3+depth) < 2 {
		s.kind = stepLeaves + 1 + stepKind(g.IntN(int(stepAccount-stepLeaves)))
	}
	switch s.kind {
	case stepMake, stepDo:
		s.end = []modelEnding{endReturns, endReturns, endReturns, endReturns, endError, endError, endPanic, endGoexit}[g.IntN(8)]
	case stepObjects, stepObjectPool:
		s.n = 1 + g.IntN(4)
	}
	if s.kind > stepLeaves {
		g.temp = s.kind == stepMake && s.temp
		s.body = g.body(depth + 1)
		g.temp = false
	}
	s.id = g.finalizers(s)
	return s
}

// finalizers makes those of a step, and gives the number of the first.
func (g *modelGenerator) finalizers(s modelStep) (first int) {
	n := 1
	if s.kind == stepObjects || s.kind == stepObjectPool {
		n = s.n
	}
	usual := [10]finKind{6: finFails, finFails, finPanics, finPanics} // the others succeed
	first = len(g.p.fins)
	for range n {
		f := modelFinalizer{how: finKind(g.IntN(int(finKinds))), pick: g.IntN(100)}
		if f.how == finExits && g.IntN(2) == 0 || g.IntN(3) > 0 {
			f.how = usual[g.IntN(len(usual))]
		}
		if f.how == finFails && s.kind == stepDefer { // it can't
			f.how = finPanics
		}
		g.p.fins = append(g.p.fins, f)
	}
	for i := first; i < first+n; i++ {
		if f := &g.p.fins[i]; f.how == finOwns || f.how == finUsesOtherPad {
			f.child = len(g.p.fins)
			g.p.fins = append(g.p.fins, modelFinalizer{})
		}
	}
	return first
}
