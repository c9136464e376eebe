package lua

// #include "state.h"
import "C"

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"unsafe"

	"github.com/upfront-mem/upfront/scope/flow"
)

// Action declares an action that calls a Lua function, and returns its signature. The function of
// returns the Lua state of a World, or nil if the World has none. P is as for flow.NewAction, with
// at most 16 inputs and 16 outputs. The Lua function gets the inputs and returns the outputs in the
// order of P's fields: a boolean for a bool, an integer for an int or a handle, and an integer or a
// float for a number.
//
// The node fails if the call returns an error or a result doesn't fit. Then the node's outputs stay
// unchanged, its links don't run, and the runner's error, a flow.ActionError, names the node. Cost:
// as State.Call, without a Go allocation.
func Action[World, P any](
	h *flow.Host[World], name, function string, of func(*World) *State,
) flow.Signature {
	var n node
	signature := flow.NewAction(h, name, func(r *flow.Runner, w *World, p *P) {
		if err := n.call(of(w), r, unsafe.Pointer(p)); err != nil {
			r.Fail(err)
		}
	})
	n = node{function, signature.Parameters, nil, 0}
	for field := range reflect.TypeFor[P]().Fields() {
		n.at = append(n.at, field.Offset)
	}
	for _, p := range n.parameters {
		if p.Out {
			n.outs++
		}
	}
	if most := C.UPFRONT_LUA_VALUES; n.outs > most || len(n.at)-n.outs > most {
		panic(fmt.Sprintf("lua: action %q: more than %d inputs or outputs", name, most))
	}
	return signature
}

type node struct {
	function   string
	parameters []flow.Parameter
	at         []uintptr // their offsets
	outs       int
}

var errNoState = errors.New("lua: the world has no state")

func (n *node) call(l *State, r *flow.Runner, p unsafe.Pointer) error {
	if l == nil {
		return errNoState
	}
	return l.within(func() error {
		l.setText(&l.c.values[0], n.function)
		if err := l.enter(C.UPFRONT_LUA_CALL, 1+n.inputs(l, r, p)); err != nil {
			return err
		}
		return n.outputs(l, r, p)
	})
}

// inputs writes the inputs after the function's name, and returns their number.
func (n *node) inputs(l *State, r *flow.Runner, p unsafe.Pointer) (count int) {
	for i, parameter := range n.parameters {
		if parameter.Out {
			continue
		}
		count++
		to, in := &l.c.values[count], unsafe.Add(p, n.at[i])
		switch parameter.Type {
		case flow.Bool:
			setBool(to, (*flow.In[bool])(in).Get(r))
		case flow.Int:
			setInt(to, int64((*flow.In[int32])(in).Get(r)))
		case flow.Number:
			setFloat(to, float64((*flow.In[float32])(in).Get(r)))
		case flow.Handle:
			setInt(to, int64((*flow.In[uint64])(in).Get(r)))
		}
	}
	return count
}

// outputs sets all outputs, or none if a result doesn't fit.
func (n *node) outputs(l *State, r *flow.Runner, p unsafe.Pointer) error {
	if int(l.c.count) != n.outs {
		return fmt.Errorf("%s returned %d values, and its action has %d outputs", n.function, l.c.count,
			n.outs)
	}
	for _, set := range []bool{false, true} {
		result := 0
		for i, parameter := range n.parameters {
			if !parameter.Out {
				continue
			}
			v := &l.c.values[result]
			result++
			if set {
				output(v, parameter.Type, r, unsafe.Add(p, n.at[i]))
			} else if !fits(v, parameter.Type) {
				what, err := l.value(result - 1)
				if err != nil {
					return err
				}
				return fmt.Errorf("%s returned %v for %v", n.function, what, parameter)
			}
		}
	}
	return nil
}

func fits(v *C.upfront_lua_value, t flow.Type) bool {
	switch t {
	case flow.Bool:
		return v.kind == C.UPFRONT_LUA_BOOLEAN
	case flow.Int:
		return v.kind == C.UPFRONT_LUA_INTEGER && v.word >= math.MinInt32 && v.word <= math.MaxInt32
	case flow.Number:
		return v.kind == C.UPFRONT_LUA_NUMBER || v.kind == C.UPFRONT_LUA_INTEGER
	default:
		return v.kind == C.UPFRONT_LUA_INTEGER
	}
}

func output(v *C.upfront_lua_value, t flow.Type, r *flow.Runner, out unsafe.Pointer) {
	switch t {
	case flow.Bool:
		(*flow.Out[bool])(out).Set(r, v.word != 0)
	case flow.Int:
		(*flow.Out[int32])(out).Set(r, int32(v.word))
	case flow.Number:
		number := float64(v.word)
		if v.kind == C.UPFRONT_LUA_NUMBER {
			number = math.Float64frombits(uint64(v.word))
		}
		(*flow.Out[float32])(out).Set(r, float32(number))
	default:
		(*flow.Out[uint64])(out).Set(r, uint64(v.word))
	}
}
