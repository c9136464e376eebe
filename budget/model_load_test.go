package budget_test

import (
	"errors"
	"runtime"

	"github.com/stretchr/testify/assert"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// How a random load ends.
const (
	endLoaded = iota
	endError
	endFull
	endPanic
	endGoexit
	endCount
	endThrough // as a load inside it: a panic or Goexit comes through
)

// load loads a region with random contents, which may load others above it, and checks the verdict. It runs in a
// goroutine of its own: a failed requirement ends that.
func (p *program) load(index int, r *budget.OpenRegion) error {
	fails := p.emptyFrom(index)
	told := p.b.Report().ErrorCount
	m := &p.regions[index]
	m.open()
	end, verdict := endThrough, false
	defer func() {
		if !verdict { // a panic or Goexit goes through
			p.emptyFrom(index)
			if v := recover(); v != nil {
				assert.NotEqual(p.t, endGoexit, end, "%q", p.log)
				panic(v)
			}
		}
	}()
	l, err := loadRegion(r, func(s scope.Scope) error {
		assert.Equal(p.t, p.want, ran, "the old contents are gone: %q", p.log)
		assert.Equal(p.t, fails, p.b.Report().ErrorCount > told, "%q", p.log)
		end = p.body(index, s)
		return p.finish(end, s)
	})
	verdict = true
	p.loaded[index] = l
	leftOpen := end == endLoaded && len(m.scopes) > 1
	var misuse *scope.Misuse
	assert.Equal(p.t, leftOpen, errors.As(err, &misuse), "%q", p.log)
	if end == endLoaded && !m.full() && !leftOpen {
		assert.NoError(p.t, err, "%q", p.log)
		p.closeTemp(m)
		p.alive[index] = true
		return nil
	}
	assert.Equal(p.t, end == endError, errors.Is(err, errLoader), "%q", p.log)
	assert.Equal(p.t, end == endFull || end != endError && m.full(), errors.Is(err, budget.ErrFull), "%q", p.log)
	assert.NotEqual(p.t, endGoexit, end, "%q", p.log)
	if end == endPanic || end == endThrough {
		assert.True(p.t, m.full(), "a panic is an error only after a full: %q", p.log)
	}
	p.emptyFrom(index)
	return err
}

// body does random things in a load and says how it ends.
func (p *program) body(index int, s scope.Scope) int {
	m := &p.regions[index]
	scopes := []scope.Scope{s}
	for range p.random.IntN(10) {
		top := scopes[len(scopes)-1]
		switch p.random.IntN(10) {
		case 0:
			if len(scopes) < 5 {
				p.say("open")
				scopes = append(scopes, top.Open("inner"))
				m.open()
			}
		case 1:
			if len(scopes) > 1 {
				p.say("close")
				scopes = scopes[:len(scopes)-1]
				p.close(top, m)
			}
		case 2:
			p.pad(0)
		case 3:
			if above := index + 1 + p.random.IntN(2); above < 3 {
				p.say("nested load %s", regionNames[above])
				_ = p.load(above, p.b.Region(regionNames[above]).In(s))
			}
		case 4:
			p.refused(index, s)
		default:
			p.say("work")
			p.inScope(top, m)
		}
		assert.NoError(p.t, p.b.CheckAll(), "%q", p.log)
		assert.Equal(p.t, p.want, ran, "%q", p.log)
	}
	if p.chance(2) {
		return endLoaded
	}
	return p.random.IntN(endCount)
}

// refused touches what must not be touched.
func (p *program) refused(index int, s scope.Scope) {
	before := quiet(p.b)
	_, err := loadRegion(p.b.Region(regionNames[p.random.IntN(index+1)]).In(s), nil)
	assert.ErrorIs(p.t, err, budget.ErrLoading)
	_, err = load(p.b, regionNames[p.random.IntN(3)], nil)
	assert.ErrorIs(p.t, err, budget.ErrLoading)
	assert.ErrorIs(p.t, p.b.Close(), budget.ErrLoading)
	assert.Equal(p.t, before, quiet(p.b))
}

func (p *program) finish(end int, s scope.Scope) error {
	p.say("end %d", end)
	switch end {
	case endError:
		return errLoader
	case endFull:
		p.frame[p.turn].top().full = false // the load tells it, and what was remembered before is overwritten
		frogs.Slice(p.b.Frame(), 1<<20)
	case endPanic:
		p.panics++
		panic("boom")
	case endGoexit:
		p.exits++
		runtime.Goexit()
	}
	return nil
}
