package flow

import (
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"
	"unicode"
	"unsafe"
)

// Host declares the actions of graphs on a World, and the events that the program fires. Make one
// Host, at package level, and declare its actions and events before the first Load. Methods of the
// zero Host panic.
type Host[World any] struct{ vocabulary }

// vocabulary is a host without its World type.
type vocabulary struct {
	Vocabulary
	made  bool
	calls []call // of each action
}

type call func(r *Runner, world, parameters unsafe.Pointer)

// NewHost returns a host without actions and events.
func NewHost[World any]() *Host[World] { return &Host[World]{vocabulary{made: true}} }

// Vocabulary returns the declared actions and events, for Compile.
func (h *Host[World]) Vocabulary() Vocabulary {
	h.declared()
	return Vocabulary{slices.Clone(h.Actions), slices.Clone(h.Events)}
}

func (v *vocabulary) declared() {
	if !v.made {
		panic(bug("a zero Host: NewHost makes one"))
	}
}

// NewAction declares an action for nodes of the type "action", and returns its signature. The
// fields of P have the types In and Out, and are stored in the blob. fn may use the fields only
// while fn runs. fn must not call Fire or Tick of the same runner, nor of another one in a graph
// that runs. NewAction panics for a field of another type, a nil fn, or a name that is empty,
// declared twice, or has the hash of another name.
func NewAction[World, P any](
	h *Host[World], name string, fn func(r *Runner, w *World, p *P),
) Signature {
	h.declared()
	if fn == nil {
		panic(fmt.Sprintf("flow: action %q has no function", name))
	}
	s := Signature{Name: name}
	end := uintptr(0)
	for f := range fieldsIn[P]("action", name) {
		p, ok := reflect.Zero(f.Type).Interface().(parameter)
		if !ok || f.Type.PkgPath() != reflect.TypeFor[Runner]().PkgPath() || f.Offset != end {
			panic(fmt.Sprintf("flow: action %q: %v.%s is a %v; a parameter is a flow.In or flow.Out "+
				"of bool, int32, float32 or uint64",
				name, reflect.TypeFor[P](), f.Name, f.Type))
		}
		role, t := p.parameter()
		s.Parameters = append(s.Parameters, Parameter{sourceName(f.Name), t, role == output})
		end += f.Type.Size()
	}
	declare("action", &h.Actions, s)
	h.calls = append(h.calls, func(r *Runner, world, parameters unsafe.Pointer) {
		fn(r, (*World)(world), (*P)(parameters))
	})
	return s
}

// Event is a declared event with values V. Fire of the zero Event panics.
type Event[V any] struct{ *signal }

// signal is an event without its Go type of values.
type signal struct {
	of     *vocabulary
	hash   uint32
	fields []field // of its values
}

// NewEvent declares an event for nodes of the types "event" and "send". The fields of V are of the
// kinds bool, int32, float32 or uint64. An event node writes the fields to the variables that the
// node names. NewEvent panics for a field of another kind, a field Key, which is the name of a
// send's key, or a name that is empty, declared twice, or has the hash of another name.
func NewEvent[V, World any](h *Host[World], name string) Event[V] {
	h.declared()
	s := Signature{Name: name}
	e := Event[V]{&signal{of: &h.vocabulary, hash: hashOf(name)}}
	for f := range fieldsIn[V]("event", name) {
		t, ok := typeOf(f.Type)
		if !ok {
			panic(fmt.Sprintf("flow: event %q: %v.%s is a %v; a value is a bool, int32, float32 or uint64",
				name, reflect.TypeFor[V](),
				f.Name, f.Type))
		}
		s.Parameters = append(s.Parameters, Parameter{Name: sourceName(f.Name), Type: t})
		e.fields = append(e.fields, field{typ: t, at: uint32(f.Offset)})
	}
	declare("event", &h.Events, s)
	return e
}

func fieldsIn[P any](what, name string) iter.Seq[reflect.StructField] {
	t := reflect.TypeFor[P]()
	if t.Kind() != reflect.Struct {
		panic(fmt.Sprintf("flow: %s %q: %v is no struct", what, name, t))
	}
	return t.Fields()
}

// HostOf returns a host whose actions do nothing, for tools that know only the vocabulary of a
// program. It returns an error if the vocabulary can't be declared.
func HostOf(v Vocabulary) (*Host[struct{}], error) {
	h := NewHost[struct{}]()
	for _, s := range v.Actions {
		if err := extend("action", &h.Actions, s); err != nil {
			return nil, err
		}
		h.calls = append(h.calls, func(*Runner, unsafe.Pointer, unsafe.Pointer) {})
	}
	for _, s := range v.Events {
		if err := extend("event", &h.Events, s); err != nil {
			return nil, err
		}
	}
	return h, nil
}

func declare(what string, to *[]Signature, s Signature) {
	if err := extend(what, to, s); err != nil {
		panic(err.Error())
	}
}

// extend adds a signature to a vocabulary, if it is valid.
func extend(what string, to *[]Signature, s Signature) error {
	for _, other := range *to {
		if other.Name != s.Name && hashOf(other.Name) == hashOf(s.Name) {
			return fmt.Errorf("flow: the %ss %q and %q have one hash: rename one", what, s.Name, other.Name)
		}
	}
	named := func(other Signature) bool { return other.Name == s.Name }
	if !isName(s.Name) || slices.ContainsFunc(*to, named) {
		return fmt.Errorf("flow: %s %q: "+eachHasName, what, s.Name)
	}
	seen := map[string]bool{}
	for _, p := range s.Parameters {
		if !isName(p.Name) || seen[p.Name] {
			return fmt.Errorf("flow: %s %q, parameter %q: "+eachHasName, what, s.Name, p.Name)
		}
		if what == "event" && p.Name == "key" {
			return fmt.Errorf("flow: event %q: a value may not be called key, as the key of a send is", s.Name)
		}
		if seen[p.Name] = true; p.Type < Bool || p.Type > Handle || p.Out && what == "event" {
			return fmt.Errorf("flow: %s %q, parameter %q: %v", what, s.Name, p.Name, p)
		}
	}
	*to = append(*to, s)
	return nil
}

// sourceName returns a field's name in a source: HasKey is has_key, ID is id, HTTPPort http_port.
func sourceName(field string) string {
	var b strings.Builder
	letters := []rune(field)
	for i, c := range letters {
		if i > 0 && unicode.IsUpper(c) &&
			(!unicode.IsUpper(letters[i-1]) || i+1 < len(letters) && unicode.IsLower(letters[i+1])) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(c))
	}
	return b.String()
}

func bug(format string, args ...any) string { return "flow: BUG: " + fmt.Sprintf(format, args...) }
