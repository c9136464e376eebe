//go:build !memtrace

package arena_c

import "unsafe"

// What is asked for is booked at its call sites in memtrace builds only: see ledger_on.go.

func (r *Row) OpenLedger()                 {}
func (r *Row) CloseLedger()                {}
func (r *Row) Sites() []SiteFigures        { return nil }
func (l *Linear) Made() []SiteFigures      { return nil }
func SampleStacks(uint64) uint64           { return 0 }
func LedgerLost() uint64                   { return 0 }
func Lent(unsafe.Pointer)                  {}
func Returned(unsafe.Pointer)              {}
func LentAt(unsafe.Pointer, string) string { return "" }
func settle(*Row)                          {}
func poolOpened(*Linear, *Pool)            {}
func poolClosed(*Pool)                     {}
func gotChunk(*Pool, unsafe.Pointer)       {}
func putChunk(*Pool, unsafe.Pointer)       {}
