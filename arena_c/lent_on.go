//go:build memtrace

package arena_c

import "unsafe"

// lent knows where proxies were asked for what they gave. Under the ledger's lock.
var lent placeTable

// Lent notes the way here for a block that a proxy gives to its client, until Returned. Cost: as Here.
func Lent(p unsafe.Pointer) {
	calls := Here(0)
	ledger.Lock()
	defer ledger.Unlock()
	if !lent.put(place{address: uintptr(p), stack: calls}) {
		ledger.lost++
	}
}

// Returned forgets a block that was lent.
func Returned(p unsafe.Pointer) {
	if p == nil {
		return
	}
	ledger.Lock()
	defer ledger.Unlock()
	lent.remove(uintptr(p))
}

// LentAt is where the client asked for a block, as lines of an error that follow its first one; "" where nobody knows.
func LentAt(p unsafe.Pointer, what string) string {
	ledger.Lock()
	defer ledger.Unlock()
	calls := lent.find(uintptr(p)).stack
	if calls == 0 {
		return ""
	}
	return "\n\t" + what + " given at:" + Indented(calls)
}
