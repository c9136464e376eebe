package flow

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"unsafe"
)

// Type is what a variable is.
type Type uint32

// The types of variables: in Go bool, int32, float32 and uint64, or types of these kinds.
const (
	Bool Type = 1 + iota
	Int
	Number
	Handle
)

// String is the type as a source has it.
func (t Type) String() string {
	if t < Bool || t > Handle {
		return "no type"
	}
	return [...]string{"bool", "int", "number", "handle"}[t-Bool]
}

// size is what a variable takes. A bool takes a word, too.
func (t Type) size() uint32 {
	if t == Handle {
		return 8
	}
	return 4
}

// Value is the Go types that variables have.
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

// In is a parameter that is read: a constant, or a variable. It lies in the blob, inside its node.
type In[T Value] struct{ at, constant uint32 }

// Get is its value. Only who was given the struct that it lies in, as an action is, may ask, and only
// meanwhile. Cost: a comparison.
func (in *In[T]) Get(r *Runner) (value T) {
	p := unsafe.Pointer(&in.constant)
	if in.at != 0 {
		p = unsafe.Add(r.data, in.at)
	} else if unsafe.Sizeof(value) > 4 {
		return value // no handle but 0 is a constant
	}
	return *(*T)(p)
}

// Out is a parameter that is written: a variable, or nothing. It lies in the blob, inside its node.
type Out[T Value] struct{ at uint32 }

// Set writes it. See [In.Get]. Cost: a comparison.
func (out *Out[T]) Set(r *Runner, value T) {
	if out.at != 0 {
		*(*T)(unsafe.Add(r.data, out.at)) = value
	}
}

// role is what a field of a node's struct is.
type role uint8

const (
	input role = iota
	output
	list  // of links
	lists // of lists
	state // the offset of a word in the dynamic data
)

// parameter is what In and Out say of themselves.
type parameter interface{ parameter() (role, Type) }

func (In[T]) parameter() (role, Type)  { return input, kindOf[T]() }
func (Out[T]) parameter() (role, Type) { return output, kindOf[T]() }

func kindOf[T Value]() Type {
	t, _ := typeOf(reflect.TypeFor[T]())
	return t
}

// size is what a parameter takes in its struct, whatever its type.
func (r role) size() uint32 {
	if r == input {
		return uint32(unsafe.Sizeof(In[int32]{}))
	}
	return uint32(unsafe.Sizeof(Out[int32]{}))
}

// field is one of a node's struct, an action's or an event's.
type field struct {
	name    string
	role    role
	typ     Type
	at      uint32 // offset in the struct
	outside bool   // of the node: among the parameters behind it
}

// constant is a value of a source as a word of the blob; an int that is written as a number in JSON is
// a float64 with nothing behind the point.
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
		return 0, fmt.Errorf("%v is a constant: a handle has none but 0", strconv.FormatFloat(number, 'g', -1, 64))
	}
	return 0, nil
}

// finite says whether a number may be a constant: a source has no other.
func finite(number float32) bool { return number-number == 0 }

// valueOf is a word of the blob as Go has it.
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
