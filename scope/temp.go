package scope

import "github.com/upfront-mem/upfront/scope/stack"

// Temp returns a scope of exactly n bytes at the far end of the arena, for temporaries: objects
// that a load needs only for a while, for example. The scope ends with s, in order with the
// finalizers. In a load it ends at the latest when the load returns. Close ends it earlier, if no
// newer temporaries are open.
//
// Temporaries nest: only the newest scope allocates, and older ones keep their bytes. A request
// that doesn't fit in the n bytes fails with a full error that names an n that is enough. Use Temp
// for a known size, such as a file's. For an unknown size use a scratch arena or a [Builder].
//
// s must be the topmost scope, or the newest of the temporaries. If n bytes aren't free, or
// limits.scopes temporaries are open, Temp unwinds with a full error. Cost: 16 bytes of s and up to
// 63 for alignment, one call into C.
func (s Scope) Temp(n int) Scope { return At(stack.OpenTemp(s.its(), s.gen, n)) }
