package scope

import "github.com/upfront-mem/upfront/scope/stack"

// Label runs fn and returns fn's error. The bytes that s gains while fn runs count for the label
// name, a subsystem such as "sound". Errors of a full arena name the labels with the most bytes,
// and a report has a line for each label. Ended labels share a line when the table is full. Labels
// nest: bytes that count for an inner label don't count for the outer label. A label ends with its
// scope. Bytes that a failed constructor frees no longer count. The bytes of temporaries
// ([Scope.Temp]) never count.
//
// s must be the topmost scope. An arena has a table of limits.labels entries (32 by default), one
// for each name in each open scope. For a further one, Label unwinds with a full error before it
// runs fn. Cost: 40 bytes of s, and a search through the names.
func Label(s Scope, name string, fn func() error) error {
	if !s.open() || s.isTemp() {
		panic(s.misuse("Label of"))
	}
	defer stack.Label(s.h, s.gen, name).End()
	return fn()
}
