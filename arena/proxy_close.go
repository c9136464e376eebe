package arena

import (
	"fmt"
	"slices"
	"strings"

	"github.com/upfront-mem/upfront/arena_c"
)

// leaksNamed is how many leaks an error names one by one.
const leaksNamed = 8

// Close ends the proxy: it refuses what comes after. Nil says that everything came back. Otherwise the error names what
// didn't, by size and by offset in the heap's block, and those blocks stay live: Heap.Free and Heap.Reset free them. A
// proxy before it that is open is a caller's bug, as is a second Close: they are refused and change nothing.
//
// Cost: O(1) when everything came back; otherwise O(blocks of the heap), with Go allocations.
func (x *Proxy) Close() error {
	if x.closed {
		return x.bug("Close", arena_c.Stale.String())
	}
	for _, front := range x.fronts {
		if !front.closed {
			return x.bug("Close", fmt.Sprintf("proxy %q before it is open", front.name))
		}
	}
	x.closed = true
	if x.stats.Live != 0 {
		return fmt.Errorf("arena: proxy %q: %s", x.name, x.leaks())
	}
	if x.back != nil {
		x.back.fronts = slices.DeleteFunc(x.back.fronts, func(front *Proxy) bool { return front == x })
	}
	return nil
}

// leaks says what is still live, from a walk through the heap.
func (x *Proxy) leaks() string {
	count, _ := x.heap.Walk(nil)
	blocks := make([]arena_c.HeapRange, count)
	_, code := x.heap.Walk(blocks)
	var live, bytes uint64
	var named []string
	for _, b := range blocks {
		offset := b.Offset + arena_c.HeapAlign
		id, size := tail(x.heap, offset, b.Asked) // a free block has no bytes asked, so no id
		owner := x.owner(id)
		if owner == nil {
			continue
		}
		live++
		bytes += size
		if live > leaksNamed {
			continue
		}
		name := fmt.Sprintf("%d bytes at offset %#x", size, offset)
		if owner != x {
			name += fmt.Sprintf(" by proxy %q", owner.name)
		}
		named = append(named, name)
	}
	var said []string
	if live != 0 {
		said = append(said, fmt.Sprintf("%s of %d bytes %s never freed: %s", plural(live, "block"), bytes, was(live), list(named, live)))
	}
	if missing := x.stats.Live - live; missing != 0 {
		said = append(said, fmt.Sprintf("%s of %d bytes %s not found: freed by the heap itself, or written past the end",
			plural(missing, "block"), x.stats.Asked-bytes, was(missing)))
	}
	if code != arena_c.OK {
		said = append(said, fmt.Sprintf("the walk through the heap says: %v", code))
	}
	return strings.Join(said, "; ")
}

// owner is this proxy or the one before it that has the id, or nil.
func (x *Proxy) owner(id uint64) *Proxy {
	if id == x.id {
		return x
	}
	for _, front := range x.fronts {
		if owner := front.owner(id); owner != nil {
			return owner
		}
	}
	return nil
}

// list joins the names of the first of count leaks.
func list(named []string, count uint64) string {
	text := strings.Join(named, ", ")
	if more := count - uint64(len(named)); more != 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func plural(n uint64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func was(n uint64) string {
	if n == 1 {
		return "was"
	}
	return "were"
}
