package flow

import (
	"reflect"
	"strings"
	"unsafe"

	"github.com/upfront-mem/upfront/arena/blob"
)

// root is a graph in the blob.
type root struct {
	Name blob.Str
	// in the order of the source, and so in that of their offsets
	Nodes     blob.Array[blob.Link[node]]
	Names     blob.Array[blob.Str]        // of the nodes, for errors, traces and pictures; none of a stripped graph
	Events    blob.Array[entry]           // in order
	Timed     blob.Array[blob.Link[node]] // delays and timers, in the order of the nodes
	Variables blob.Array[variable]        // in the order of their offsets
	Actions   blob.Array[signature]       // that nodes refer to, in the order of the first that does
	Signals   blob.Array[signature]       // events likewise
	// the dynamic data of a new instance, which begins with a head
	Template blob.Array[uint64]
	State    uint32 // where the nodes' state begins in it
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
	Name       blob.Str // of a stripped graph the bytes of its print
	Hash       uint32   // of the name
	Parameters blob.Array[parameterOf]
}

type parameterOf struct {
	Name blob.Str
	Type Type
	Out  uint32 // 0 or 1
}

// head is what the dynamic data begins with.
type head struct {
	waiting uint32 // how many delays and timers run
	random  uint32 // the state of all random nodes
}

const headSize = uint32(unsafe.Sizeof(head{}))

// to is a link: it leads to a port of a node.
type to struct {
	Node blob.Link[node]
	Port uint32
}

const toSize = uint32(unsafe.Sizeof(to{}))

type links = blob.Array[to]

// node is what all nodes begin with.
type node struct {
	Tag  blob.Tag
	Then links
}

// signed returns where a node of an event, an action or a send has the index of its signature, and the words of its
// parameters; nil of any other node.
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

// flagAt is one that is 0 or 1, and that a source may begin with.
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
		Out blob.Array[uint32] // the variable of each parameter; 0: none
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
	timer struct { // laid out as a delay
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

// Ports of nodes that have several, in the order of their kinds.
const (
	portIn = iota
	portOpen
	portClose
	portToggle

	portStop  = 1 // of a delay, timer
	portReset = 1 // of a once, counter, sequence
)

// kind is a variant of node: all that is to be known of it.
type kind struct {
	name   string // of the type in a source
	typ    Type   // of its operands, where several variants have one name
	size   uint32
	fields []field // in order
	ports  []string
}

var format = blob.Of[root]()

// kinds by tag.
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

// fieldsOf are the fields of a node's struct that a source speaks of. One of sequences and random
// nodes that all nodes have, Then, isn't.
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
			continue // of an event, an action, a send
		}
		fields = append(fields, of)
	}
	return fields
}
