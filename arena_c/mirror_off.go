//go:build cgo && !asan && !checked

package arena_c

import "unsafe"

// Positions are canonical addresses.

// At returns the address of an offset.
func (h *Header) At(offset uint64) unsafe.Pointer { return unsafe.Add(unsafe.Pointer(h), offset) }

// Place returns the distance from `from` to p.
func Place(p, from unsafe.Pointer) uint64 { return uint64(uintptr(p)) - uint64(uintptr(from)) }

// The functions below are for asan and checked builds: see mirror_on.go.

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
