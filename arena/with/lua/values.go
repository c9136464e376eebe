package lua

// #include "state.h"
import "C"

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"runtime/cgo"
	"strings"
	"unsafe"

	"github.com/upfront-mem/upfront/scope"
)

// put passes values to C. Strings are pinned until the call ends or a Go function returns.
func (l *State) put(to []C.upfront_lua_value, values []any) error {
	if len(values) > C.UPFRONT_LUA_VALUES {
		return fmt.Errorf("%d values, of at most %d", len(values), C.UPFRONT_LUA_VALUES)
	}
	for i, v := range values {
		if err := l.set(&to[i], v); err != nil {
			return fmt.Errorf("value %d is %w", i+1, err)
		}
	}
	return nil
}

func (l *State) set(c *C.upfront_lua_value, v any) error {
	switch v := v.(type) {
	case nil:
		c.kind = C.UPFRONT_LUA_NIL
		return nil
	case string:
		l.setText(c, v)
		return nil
	}
	switch v := reflect.ValueOf(v); {
	case v.Kind() == reflect.Bool:
		setBool(c, v.Bool())
	case v.CanInt():
		setInt(c, v.Int())
	case v.CanUint():
		setInt(c, int64(v.Uint()))
	case v.CanFloat():
		setFloat(c, v.Float())
	default:
		return fmt.Errorf("a %v: only numbers, strings, booleans and nil go from Go to Lua", v.Type())
	}
	return nil
}

func (l *State) setText(c *C.upfront_lua_value, text string) {
	c.kind, c.word, c.text = C.UPFRONT_LUA_TEXT, C.int64_t(len(text)), nil
	if len(text) > 0 {
		first := unsafe.StringData(text)
		l.pins.Pin(first)
		c.text = (*C.char)(unsafe.Pointer(first))
	}
}

func setBool(c *C.upfront_lua_value, v bool) {
	c.kind, c.word = C.UPFRONT_LUA_BOOLEAN, 0
	if v {
		c.word = 1
	}
}

func setInt(c *C.upfront_lua_value, v int64) {
	c.kind, c.word = C.UPFRONT_LUA_INTEGER, C.int64_t(v)
}

func setFloat(c *C.upfront_lua_value, v float64) {
	c.kind, c.word = C.UPFRONT_LUA_NUMBER, C.int64_t(math.Float64bits(v))
}

// values returns copies of the values that C has left.
func (l *State) values() ([]any, error) {
	n := int(l.c.count)
	if n > C.UPFRONT_LUA_VALUES {
		return nil, fmt.Errorf("%d values, of at most %d", n, C.UPFRONT_LUA_VALUES)
	}
	values := make([]any, n)
	for i := range values {
		v, err := l.value(i)
		if err != nil {
			return nil, err
		}
		values[i] = v
	}
	return values, nil
}

func (l *State) value(i int) (any, error) {
	switch c := &l.c.values[i]; c.kind {
	case C.UPFRONT_LUA_NIL:
		return nil, nil
	case C.UPFRONT_LUA_BOOLEAN:
		return c.word != 0, nil
	case C.UPFRONT_LUA_INTEGER:
		return int64(c.word), nil
	case C.UPFRONT_LUA_NUMBER:
		return math.Float64frombits(uint64(c.word)), nil
	case C.UPFRONT_LUA_TEXT:
		return textOf(c), nil
	default:
		return nil, fmt.Errorf("value %d is a %s: only numbers, strings, booleans and nil go from Lua to Go", i+1,
			textOf(c))
	}
}

func textOf(c *C.upfront_lua_value) string {
	return strings.Clone(unsafe.String((*byte)(unsafe.Pointer(c.text)), int(c.word)))
}

// words returns the text of an error that Lua has left.
func (l *State) words() string {
	v, err := l.value(0)
	switch {
	case err != nil:
		return fmt.Sprintf("an error that is a %s", textOf(&l.c.values[0]))
	case v == nil:
		return "an error that is nil"
	}
	return fmt.Sprint(v)
}

//export upfrontLuaCall
func upfrontLuaCall(handle C.uintptr_t, index, count C.int) C.int {
	l := cgo.Handle(handle).Value().(*State)
	args, err := l.values()
	if err == nil {
		var results []any
		l.word.Store(calling)
		results, err = l.call(l.functions[index], args)
		if !l.word.CompareAndSwap(calling, running) {
			return C.UPFRONT_LUA_GONE
		}
		if l.pins.Unpin(); err == nil {
			err = l.put(l.c.values[:], results)
		}
		if err == nil {
			return C.int(len(results))
		}
	}
	l.cause = err
	l.setText(&l.c.values[0], err.Error())
	return -1
}

// call runs a Go function and turns its panic into an error, because a panic can't pass through C.
// A runtime.Goexit does, and loses Lua's frames and the state with them.
func (l *State) call(fn Func, args []any) (results []any, err error) {
	returned := false
	defer func() {
		if returned {
			return
		}
		v := recover()
		if v == nil {
			l.word.CompareAndSwap(calling, lost)
			return
		}
		cause, ok := v.(error)
		if !ok {
			cause = errors.New(fmt.Sprint(v))
		}
		var full *scope.FullError
		if errors.As(cause, &full) {
			cause = full // as it is now
		}
		results, err = nil, fmt.Errorf("a Go function panicked: %w", cause)
	}()
	results, err = fn(args)
	returned = true
	return results, err
}
