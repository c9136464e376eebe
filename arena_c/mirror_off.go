//go:build cgo && !asan && !checked

package arena_c

import "unsafe"

// Everything lies where it is accounted.

// At is where the bytes of an offset lie.
func (h *Header) At(offset uint64) unsafe.Pointer { return unsafe.Add(unsafe.Pointer(h), offset) }

// Place is how far behind `from` the bytes at p are accounted.
func Place(p, from unsafe.Pointer) uint64 { return uint64(uintptr(p)) - uint64(uintptr(from)) }

// What follows is for asan and checked builds: see mirror_on.go.

func (h *Scopes) MarkRoom(at, size uint64) unsafe.Pointer         { return h.At(at) }
func (h *Scopes) MarkLess(from, end, size uint64)                 {}
func (h *Scopes) MarkDead(at, size uint64)                        {}
func Position(canonical unsafe.Pointer) unsafe.Pointer            { return canonical }
func Gather(from unsafe.Pointer, size uint64)                     {}
func Scatter(from unsafe.Pointer, size uint64)                    {}
func (p *Pool) Remark(states []byte)                              {}
func (r *Row) Over()                                              {}
func (m *Map) MirrorSize() uint64                                 { return 0 }
func (m *Map) MirrorOpen(memory unsafe.Pointer, name string) bool { return true }
func (m *Map) MirrorClose()                                       {}
func (m *Map) Damage() string                                     { return "" }
