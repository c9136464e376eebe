package flow

import (
	"reflect"
	"strings"
	"unsafe"

	"github.com/upfront-mem/upfront/arena/blob"
)

// root is the root of a graph's blob. Node structs are in the blob; their state is words of an
// instance's dynamic data, at offsets that the nodes store.
//
// For example, the graph of one variable "held" and one delay has dynamic data of 16 bytes: the
// head at 0, held at 8, and the delay's ticks left at 12, so State is 12. A new instance is a copy
// of Template. The delay's Left is 12, and an input that reads held has the offset 8.
type root struct {
	Name blob.Str
	// in the order of the source, and of their offsets
	Nodes     blob.Array[blob.Link[node]]
	Names     blob.Array[blob.Str]        // of the nodes; none in a stripped graph
	Events    blob.Array[entry]           // sorted: see entry
	Timed     blob.Array[blob.Link[node]] // delays and timers, in the order of the nodes
	Variables blob.Array[variable]        // in the order of their offsets
	Actions   blob.Array[signature]       // used by nodes, in the order of their first use
	Signals   blob.Array[signature]       // events used by nodes, in the same order
	// initial dynamic data of an instance; a head is first
	Template blob.Array[uint64]
	State    uint32 // offset of the first word of nodes' state
}

// entry is an event node in the table, which is ordered by hash and key.
type entry struct {
	Hash uint32 // of the event's name
	Key  int32
	Node blob.Link[node]
}

type variable struct {
	Name blob.Str
	Type Type
	At   uint32 // offset in the dynamic data
}

type signature struct {
	Name       blob.Str // in a stripped graph its fingerprint
	Hash       uint32   // of the name
	Parameters blob.Array[parameterOf]
}

type parameterOf struct {
	Name blob.Str
	Type Type
	Out  uint32 // 0 or 1
}

// head is the beginning of the dynamic data.
type head struct {
	waiting uint32 // number of delays and timers that run
	random  uint32 // the state of all random nodes
}

const headSize = uint32(unsafe.Sizeof(head{}))

type to struct {
	Node blob.Link[node]
	Port uint32
}

const toSize = uint32(unsafe.Sizeof(to{}))

type links = blob.Array[to]

// node is the common beginning of all nodes.
type node struct {
	Tag  blob.Tag
	Then links
}

// signed returns the index of the signature and the words of the parameters in an event, an action
// or a send, and nil for any other node.
func (n *node) signed() (of *uint32, words *blob.Array[uint32]) {
	switch p := unsafe.Pointer(n); n.Tag {
	case tagEvent:
		return &(*event)(p).Of, &(*event)(p).Out
	case tagAction:
		return &(*action)(p).Of, &(*action)(p).Parameters
	case tagSend:
		return &(*send)(p).Of, &(*send)(p).Parameters
	}
	return nil, nil
}

// stateAt is the offset of a word of state in the dynamic data.
type stateAt uint32

// flagAt is a stateAt of a word that is 0 or 1, and that a source may set.
type flagAt uint32

// The tags, in the order of Variants.
const (
	tagEvent blob.Tag = iota
	tagBranch
	tagGate
	tagOnce
	tagCounter
	tagDelay
	tagTimer
	tagSequence
	tagRandom
	tagSetBool
	tagSetInt
	tagSetNumber
	tagSetHandle
	tagAddInt
	tagAddNumber
	tagEqualBool
	tagEqualInt
	tagEqualNumber
	tagEqualHandle
	tagLessInt
	tagLessNumber
	tagAction
	tagSend
)

// Variants makes node a union (package blob).
func (node) Variants() []any {
	return []any{
		event{}, branch{}, gate{}, once{}, counter{}, delay{}, timer{}, sequence{}, random{},
		set[bool]{}, set[int32]{}, set[float32]{}, set[uint64]{}, add[int32]{}, add[float32]{},
		equal[bool]{}, equal[int32]{}, equal[float32]{}, equal[uint64]{}, less[int32]{}, less[float32]{},
		action{}, send{},
	}
}

type (
	event struct {
		node
		Of  uint32 // index in Signals
		Key int32
		Out blob.Array[uint32] // offset of the variable for each parameter; 0: none
	}
	branch struct {
		node
		Else links
		If   In[bool]
	}
	gate struct {
		node
		Closed flagAt
	}
	once struct {
		node
		Done flagAt
	}
	counter struct {
		node
		Limit In[int32]
		Count stateAt
	}
	delay struct {
		node
		Left  stateAt
		Ticks In[int32]
	}
	timer struct { // with the layout of a delay
		node
		Left  stateAt
		Every In[int32]
	}
	sequence struct {
		node
		Lists blob.Array[links]
		Next  stateAt
	}
	random struct {
		node
		Lists blob.Array[links]
	}
	set[T Value] struct {
		node
		To    Out[T]
		Value In[T]
	}
	add[T Value] struct {
		node
		To    Out[T]
		Value In[T]
	}
	equal[T Value] struct {
		node
		Else links
		A, B In[T]
	}
	less[T Value] struct {
		node
		Else links
		A, B In[T]
	}
	action struct {
		node
		Of         uint32 // index in Actions
		Parameters blob.Array[uint32]
	}
	send struct {
		node
		Of         uint32 // index in Signals
		Key        In[int32]
		Parameters blob.Array[uint32]
	}
)

// The ports of nodes with several, in the order of kinds.
const (
	portIn = iota
	portOpen
	portClose
	portToggle

	portStop  = 1 // of a delay, timer
	portReset = 1 // of a once, counter, sequence
)

// kind describes a variant of node.
type kind struct {
	name   string // of the type in a source
	typ    Type   // of its operands, if several variants have one name
	size   uint32
	fields []field // in order
	ports  []string
}

var format = blob.Of[root]()

// kinds is indexed by tag.
var kinds = func() []kind {
	ports := map[string]string{
		"event": "", "gate": "in open close toggle", "once": "in reset", "counter": "in reset",
		"delay": "in cancel", "timer": "start stop", "sequence": "in reset",
	}
	var all []kind
	for _, v := range (node{}).Variants() {
		t := reflect.TypeOf(v)
		k := kind{size: uint32(t.Size()), ports: []string{"in"}}
		k.name, _, _ = strings.Cut(t.Name(), "[")
		if names, ok := ports[k.name]; ok {
			k.ports = strings.Fields(names)
		}
		if k.name != t.Name() {
			p, _ := reflect.Zero(t.Field(t.NumField() - 1).Type).Interface().(parameter)
			_, k.typ = p.parameter()
		}
		k.fields = fieldsOf(t)
		all = append(all, k)
	}
	return all
}()

// fieldsOf returns the fields of a node's struct that a source sets. Sequences and random nodes
// don't use Then, which all nodes have.
func fieldsOf(t reflect.Type) (fields []field) {
	then := field{name: "then", role: list, at: uint32(unsafe.Offsetof(node{}.Then))}
	fields = append(fields, then)
	for i := 1; i < t.NumField(); i++ {
		f := t.Field(i)
		of := field{name: strings.ToLower(f.Name), at: uint32(f.Offset)}
		switch v := reflect.Zero(f.Type).Interface().(type) {
		case parameter:
			of.role, of.typ = v.parameter()
		case links:
			of.role = list
		case blob.Array[links]:
			of.role = lists
			fields = fields[1:]
		case stateAt:
			of.role, of.typ = state, Int
		case flagAt:
			of.role, of.typ = state, Bool
		default:
			continue // only in events, actions and sends
		}
		fields = append(fields, of)
	}
	return fields
}
