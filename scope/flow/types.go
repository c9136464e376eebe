package flow

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"unsafe"
)

// Type is the type of a variable.
type Type uint32

// The types of variables: bool, int32, float32 and uint64 in Go, or types of these kinds.
const (
	Bool Type = 1 + iota
	Int
	Number
	Handle
)

// String returns the type as a source spells it.
func (t Type) String() string {
	if t < Bool || t > Handle {
		return "no type"
	}
	return [...]string{"bool", "int", "number", "handle"}[t-Bool]
}

// size returns the bytes of a value; a bool takes 4.
func (t Type) size() uint32 {
	if t == Handle {
		return 8
	}
	return 4
}

// Value is the set of Go types for variables.
type Value interface {
	~bool | ~int32 | ~float32 | ~uint64
}

func typeOf(t reflect.Type) (Type, bool) {
	switch t.Kind() {
	case reflect.Bool:
		return Bool, true
	case reflect.Int32:
		return Int, true
	case reflect.Float32:
		return Number, true
	case reflect.Uint64:
		return Handle, true
	}
	return 0, false
}

// In is a parameter that an action reads: a constant or a variable. An In is stored in the blob.
type In[T Value] struct{ at, constant uint32 }

// Get returns the value. Only the action that received the parameter's struct may call it, and only
// while the action runs. Cost: a comparison.
func (in *In[T]) Get(r *Runner) T { return in.in(r.data) }

// in is Get for the data of an instance.
func (in *In[T]) in(data unsafe.Pointer) (value T) {
	p := unsafe.Pointer(&in.constant)
	if in.at != 0 {
		p = unsafe.Add(data, in.at)
	} else if unsafe.Sizeof(value) > 4 {
		return value // a handle's only constant is 0
	}
	return *(*T)(p)
}

// Out is a parameter that an action writes. If the node names a variable, the value goes to that
// variable. An Out is stored in the blob.
type Out[T Value] struct{ at uint32 }

// Set writes the variable, if there is one. Set may be called where [In.Get] may be called. Cost: a
// comparison.
func (out *Out[T]) Set(r *Runner, value T) {
	if out.at != 0 {
		*(*T)(unsafe.Add(r.data, out.at)) = value
	}
}

type role uint8

const (
	input role = iota
	output
	list  // of links
	lists // of lists
	state // offset of a word in the dynamic data
)

// parameter is implemented by In and Out.
type parameter interface{ parameter() (role, Type) }

func (In[T]) parameter() (role, Type)  { return input, kindOf[T]() }
func (Out[T]) parameter() (role, Type) { return output, kindOf[T]() }

func kindOf[T Value]() Type {
	t, _ := typeOf(reflect.TypeFor[T]())
	return t
}

// size returns the bytes of a parameter in its struct, which don't depend on its type.
func (r role) size() uint32 {
	if r == input {
		return uint32(unsafe.Sizeof(In[int32]{}))
	}
	return uint32(unsafe.Sizeof(Out[int32]{}))
}

// field is a field in the struct of a node, an action or an event.
type field struct {
	name    string
	role    role
	typ     Type
	at      uint32 // offset in the struct
	outside bool   // among the parameters that follow the node
}

// constant returns a value of a source as a word of the blob. A float64 without a fraction is a
// valid int, because JSON doesn't distinguish them.
func constant(value any, t Type) (word uint32, err error) {
	wrong := func() (uint32, error) { return 0, fmt.Errorf("%v is no %v", value, t) }
	v := reflect.ValueOf(value)
	switch {
	case value == nil:
		return 0, nil
	case t == Bool && v.Kind() == reflect.Bool:
		if v.Bool() {
			word = 1
		}
		return word, nil
	case t == Bool || !v.CanInt() && !v.CanFloat() && !v.CanUint():
		return wrong()
	}
	number := v.Convert(reflect.TypeFor[float64]()).Float()
	switch t {
	case Int:
		if number != math.Trunc(number) || number < math.MinInt32 || number > math.MaxInt32 {
			return wrong()
		}
		return uint32(int32(number)), nil
	case Number:
		if !finite(float32(number)) {
			return wrong()
		}
		return math.Float32bits(float32(number)), nil
	}
	if number != 0 {
		return 0, fmt.Errorf("%v is a constant: the only constant of a handle is 0",
			strconv.FormatFloat(number, 'g', -1, 64))
	}
	return 0, nil
}

func finite(number float32) bool { return number-number == 0 }

// valueOf returns the value at p, in the blob or in an instance.
func valueOf(p unsafe.Pointer, t Type) any {
	switch t {
	case Bool:
		return *(*uint32)(p) != 0
	case Int:
		return *(*int32)(p)
	case Number:
		return *(*float32)(p)
	}
	return *(*uint64)(p)
}
