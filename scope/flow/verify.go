package flow

import (
	"errors"
	"fmt"
	"math"
	"sort"
	"unicode/utf8"
	"unsafe"

	"github.com/upfront-mem/upfront/arena/blob"
)

// verify checks everything that a runner relies on, in bytes from any source. Package blob has
// checked the targets of links. The rest is offsets in the dynamic data, ports, and the tables.
func verify(data, scratch []byte) (*root, blob.Blob, error) {
	r, b, err := format.Verify(data, scratch)
	if err != nil {
		return nil, b, fmt.Errorf("flow: %w", err)
	}
	v := verifier{root: r, blob: b, nodes: r.Nodes.Get(b), variables: r.Variables.Get(b),
		size: uint64(r.Template.Len()) * 8, left: uint64(len(data)), stripped: blob.IsBare(data)}
	if err := v.all(); err != nil {
		return nil, b, fmt.Errorf("flow: damaged: graph %.80q: %w", r.Name.Get(b), err)
	}
	return r, b, nil
}

type verifier struct {
	*root
	blob      blob.Blob
	nodes     []blob.Link[node]
	variables []variable
	size      uint64 // of the dynamic data
	left      uint64 // bytes of the blob that no part has taken
	stripped  bool
}

func (v *verifier) all() error {
	if v.stripped {
		if err := v.nameless(); err != nil {
			return err
		}
	} else if len(v.nodes) != v.Names.Len() {
		return fmt.Errorf("%d nodes have %d names", len(v.nodes), v.Names.Len())
	}
	before := uint32(0)
	for i, l := range v.nodes {
		if at := offsetOf(l); at <= before {
			return fmt.Errorf("node %d is at %d, before its predecessor", i, at)
		}
		before = offsetOf(l)
	}
	if !v.apart() {
		return errors.New("parts of it share their bytes")
	}
	if err := v.data(); err != nil {
		return err
	}
	for _, all := range []blob.Array[signature]{v.Actions, v.Signals} {
		for _, s := range all.Get(v.blob) {
			if !v.stripped && s.Hash != hashOf(s.Name.Get(v.blob)) {
				return fmt.Errorf("the hash of %.80q is %08x", s.Name.Get(v.blob), s.Hash)
			}
			for _, p := range s.Parameters.Get(v.blob) {
				if p.Type < Bool || p.Type > Handle || p.Out > 1 {
					return fmt.Errorf("parameter %.80q of %.80q is a %d, %d", p.Name.Get(v.blob),
						s.Name.Get(v.blob), p.Type, p.Out)
				}
			}
		}
	}
	if !v.named() {
		return fmt.Errorf("it has a name that isn't UTF-8")
	}
	for i, l := range v.nodes {
		if err := v.node(l.Get(v.blob)); err != nil {
			return fmt.Errorf("node %.80q: %w", nodeName(v.root, v.blob, i), err)
		}
	}
	return v.tables()
}

// apart reports whether lists and names have bytes of their own, as the compiler writes them. If
// parts could overlap, a small blob could have millions of large ones, and checking or copying them
// would take forever.
func (v *verifier) apart() bool {
	ok := v.takes(len(v.Name.Get(v.blob)), 1)
	for _, name := range v.Names.Get(v.blob) {
		ok = ok && v.takes(len(name.Get(v.blob)), 1)
	}
	for _, x := range v.variables {
		ok = ok && v.takes(len(x.Name.Get(v.blob)), 1)
	}
	for _, all := range []blob.Array[signature]{v.Actions, v.Signals} {
		for _, s := range all.Get(v.blob) {
			ok = ok && v.takes(len(s.Name.Get(v.blob)), 1) &&
				v.takes(s.Parameters.Len(), unsafe.Sizeof(parameterOf{}))
			for i := 0; ok && i < s.Parameters.Len(); i++ {
				ok = v.takes(len(s.Parameters.Get(v.blob)[i].Name.Get(v.blob)), 1)
			}
		}
	}
	for i := 0; ok && i < len(v.nodes); i++ {
		ok = v.nodeApart(v.nodes[i].Get(v.blob))
	}
	return ok
}

func (v *verifier) nodeApart(n *node) bool {
	ok := true
	for _, f := range kinds[n.Tag].fields {
		p := unsafe.Add(unsafe.Pointer(n), f.at)
		switch f.role {
		case list:
			ok = ok && v.takes((*links)(p).Len(), uintptr(toSize))
		case lists:
			all := *(*blob.Array[links])(p)
			ok = ok && v.takes(all.Len(), unsafe.Sizeof(links{}))
			for i := 0; ok && i < all.Len(); i++ {
				ok = v.takes(all.Get(v.blob)[i].Len(), uintptr(toSize))
			}
		}
	}
	if _, words := n.signed(); words != nil {
		ok = ok && v.takes(words.Len(), 4)
	}
	return ok
}

func (v *verifier) takes(count int, size uintptr) bool {
	bytes := uint64(count) * uint64(size)
	if bytes > v.left {
		return false
	}
	v.left -= bytes
	return true
}

func (v *verifier) named() bool {
	ok := utf8.ValidString(v.Name.Get(v.blob))
	for _, name := range v.Names.Get(v.blob) {
		ok = ok && utf8.ValidString(name.Get(v.blob))
	}
	for _, x := range v.variables {
		ok = ok && utf8.ValidString(x.Name.Get(v.blob))
	}
	return ok
}

// dataMax bounds the dynamic data, so that poolSize can't overflow.
const dataMax = 16 << 20

// data checks the layout of the dynamic data: a head, variables one after another, and state.
func (v *verifier) data() error {
	if v.size < uint64(headSize) || v.size > dataMax || v.State < headSize || uint64(v.State) > v.size {
		return fmt.Errorf("%d bytes of dynamic data, with state from %d", v.size, v.State)
	}
	template := unsafe.Pointer(unsafe.SliceData(v.Template.Get(v.blob)))
	end := headSize
	for i, x := range v.variables {
		size := x.Type.size()
		if x.Type < Bool || x.Type > Handle || x.At < end || x.At > v.State || v.State-x.At < size ||
			x.At%size != 0 {
			return fmt.Errorf("variable %.80q is a %d at %d", variableName(v.root, v.blob, i), x.Type, x.At)
		}
		if word := *(*uint32)(unsafe.Add(template, x.At)); !isConstant(word, x.Type) {
			return fmt.Errorf("variable %.80q is %#x, no %v", variableName(v.root, v.blob, i), word, x.Type)
		}
		end = x.At + size
	}
	return nil
}

// isConstant reports whether a word is a constant of the type.
func isConstant(word uint32, t Type) bool {
	return t == Int || t == Bool && word <= 1 || t == Number && finite(math.Float32frombits(word)) ||
		t == Handle && word == 0
}

func (v *verifier) uses(at uint32, t Type) bool {
	i := variableAt(v.variables, at)
	return i >= 0 && v.variables[i].Type == t
}

// variableAt returns the index of the variable at an offset of the dynamic data, or -1.
func variableAt(variables []variable, at uint32) int {
	i := sort.Search(len(variables), func(i int) bool { return variables[i].At >= at })
	if i == len(variables) || variables[i].At != at {
		return -1
	}
	return i
}

func (v *verifier) node(n *node) error {
	for _, f := range kinds[n.Tag].fields {
		if err := v.field(f, unsafe.Add(unsafe.Pointer(n), f.at)); err != nil {
			return err
		}
	}
	all := v.Signals
	if n.Tag == tagAction {
		all = v.Actions
	}
	if of, words := n.signed(); of != nil {
		return v.parameters(*of, all, *words, n.Tag == tagEvent)
	}
	return nil
}

func (v *verifier) field(f field, p unsafe.Pointer) error {
	switch f.role {
	case input:
		in := (*In[int32])(p)
		if in.at != 0 && !v.uses(in.at, f.typ) || in.at == 0 && !isConstant(in.constant, f.typ) {
			return fmt.Errorf("%s is %#x at %d, no %v", f.name, in.constant, in.at, f.typ)
		}
	case output:
		if at := (*Out[int32])(p).at; !v.uses(at, f.typ) && (at != 0 || !f.outside) {
			return fmt.Errorf("%s writes to %d, where no %v is", f.name, at, f.typ)
		}
	case list:
		return v.links(*(*links)(p))
	case lists:
		for _, l := range (*(*blob.Array[links])(p)).Get(v.blob) {
			if err := v.links(l); err != nil {
				return err
			}
		}
	case state:
		if at := *(*uint32)(p); at < v.State || uint64(at)+4 > v.size || at%4 != 0 {
			return fmt.Errorf("its state is at %d, outside of %d to %d", at, v.State, v.size)
		}
	}
	return nil
}

func (v *verifier) links(all links) error {
	for _, l := range all.Get(v.blob) {
		if indexOf(v.nodes, offsetOf(l.Node)) < 0 {
			return fmt.Errorf("it leads to %d, where no node is", offsetOf(l.Node))
		}
		if ports := kinds[l.Node.Get(v.blob).Tag].ports; l.Port >= uint32(len(ports)) {
			return fmt.Errorf("it leads to port %d of a node that has %d", l.Port, len(ports))
		}
	}
	return nil
}

// indexOf returns the index of the node at an offset, or -1.
func indexOf(nodes []blob.Link[node], at uint32) int {
	i := sort.Search(len(nodes), func(i int) bool { return offsetOf(nodes[i]) >= at })
	if i == len(nodes) || offsetOf(nodes[i]) != at {
		return -1
	}
	return i
}

// parameters checks the words of a node against its signature. The words of an event are the
// variables to which its values are written.
func (v *verifier) parameters(of uint32, all blob.Array[signature], words blob.Array[uint32], values bool) error {
	if of >= uint32(all.Len()) {
		return fmt.Errorf("it has signature %d, of %d", of, all.Len())
	}
	left := words.Get(v.blob)
	for _, p := range all.Get(v.blob)[of].Parameters.Get(v.blob) {
		f := field{name: "a parameter", typ: p.Type, role: input, outside: true}
		if p.Out != 0 || values {
			f.role = output
		}
		size := int(f.role.size() / 4)
		if len(left) < size {
			return fmt.Errorf("it has %d bytes of parameters", 4*words.Len())
		}
		if err := v.field(f, unsafe.Pointer(&left[0])); err != nil {
			return err
		}
		left = left[size:]
	}
	if len(left) != 0 {
		return fmt.Errorf("it has %d bytes of parameters", 4*words.Len())
	}
	return nil
}

// tables checks the tables for the runner: of events, and of delays and timers.
func (v *verifier) tables() error {
	events := v.Events.Get(v.blob)
	for i, e := range events {
		if i > 0 && compare(events[i-1], e) >= 0 {
			return fmt.Errorf("event %d is out of order", i)
		}
		if i := indexOf(v.nodes, offsetOf(e.Node)); i < 0 || e.Node.Get(v.blob).Tag != tagEvent {
			return fmt.Errorf("no event is at %d", offsetOf(e.Node))
		}
		n := (*event)(unsafe.Pointer(e.Node.Get(v.blob)))
		if v.Signals.Get(v.blob)[n.Of].Hash != e.Hash || n.Key != e.Key {
			return fmt.Errorf("the event at %d isn't the one in the table", offsetOf(e.Node))
		}
	}
	before := uint32(0)
	for _, l := range v.Timed.Get(v.blob) {
		if offsetOf(l) <= before {
			return fmt.Errorf("the delay at %d is out of order", offsetOf(l))
		}
		before = offsetOf(l)
		if i := indexOf(v.nodes, offsetOf(l)); i < 0 || l.Get(v.blob).Tag != tagDelay &&
			l.Get(v.blob).Tag != tagTimer {
			return fmt.Errorf("no delay is at %d", offsetOf(l))
		}
	}
	return nil
}

// offsetOf returns the offset in a link, which package blob has checked.
func offsetOf(l blob.Link[node]) uint32 { return *(*uint32)(unsafe.Pointer(&l)) }

// span is an array of links as a runner keeps it, in 64 bits.
type span struct{ offset, count uint32 }

func spanOf[T any](a *blob.Array[T]) span { return *(*span)(unsafe.Pointer(a)) }

var (
	_ [unsafe.Sizeof(blob.Link[node]{})]byte = [4]byte{}
	_ [unsafe.Sizeof(links{})]byte           = [unsafe.Sizeof(span{})]byte{}
)
