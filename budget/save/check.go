package save

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/upfront-mem/upfront/arena_c"
)

// check returns an error for an image from outside that play couldn't have left. It checks the
// words of pools, allocators, containers and the chain, bools and links; other bytes may have any
// value. It costs O(chunks), a read of free chunks, and the check of links. Mainly the first call
// makes Go allocations. pre: the state is of a state region. The image isn't changed.
func (p *part) check(image []byte) error {
	if r := p.library; r != nil && !p.trusted {
		who := "a C library's"
		if !r.C {
			who = "the library's"
		}
		return p.bad(r.Offset-p.mark, "%s: %s data in it has addresses, which can't be checked; Take and "+
			"Restore work; to take snapshots from outside, check a signature of them, and call "+
			"State.Authenticated in the load", r.Kind, who)
	}
	words, state := image[p.words:p.from], image[p.from:p.to]
	for _, node := range p.nodes {
		if at := node.At - p.mark; !isZero(state[at:][:node.Size]) {
			return p.bad(at, "%d bytes of the scope's chain, which aren't zeros", node.Size)
		}
	}
	if p.links == nil {
		p.links = newLinks(p.State)
	}
	for i := range p.pools {
		if err := p.checkPool(&p.pools[i], words[poolWords*i:], state); err != nil {
			return err
		}
	}
	for i := range p.tenants {
		t := &p.tenants[i]
		if err := t.check(state[t.at:][:t.size]); err != nil {
			return p.bad(t.at, "%s: %w", t.name, err)
		}
	}
	for _, b := range image[p.to:min((p.to+arena_c.LineSize-1)&^(arena_c.LineSize-1), len(image))] {
		if b != 0 {
			return p.bad(p.Size(), "the padding after it isn't zeros")
		}
	}
	return p.links.check(state)
}

func (p *part) bad(at uint64, text string, args ...any) error {
	why := fmt.Errorf(text, args...)
	return fmt.Errorf("region %s, byte %#x of the state: %w", p.saved.Name, at, why)
}

// chunkSeen marks a free chunk in checkNumbers.
const chunkSeen = 0x80

func (p *part) checkPool(pool *pool, words, state []byte) error {
	h := pool.header
	free, retired := binary.LittleEndian.Uint32(words), binary.LittleEndian.Uint32(words[4:])
	states := pool.states(state) // the last chunk's comes first
	count := uint32(len(states))
	bad := func(at uint64, text string, args ...any) error {
		why := fmt.Errorf(text, args...)
		return p.bad(at, "a pool of %d chunks of %d bytes: %w", count, h.Stride, why)
	}
	numbers := pool.first + h.Numbers - h.Chunks
	c := poolChunks{states: states, numbers: state[numbers:], free: free, retired: retired, handles: h.Handles,
		own: uint32(pool.index) * (h.Handles + 1)}
	if at, err := c.check(pool.first, numbers); err != nil {
		return bad(at, "%w", err)
	}
	at := pool.first
	for i := len(states) - 1; i >= 0; i-- {
		if states[i] != arena_c.ChunkLive && !isZero(state[at:at+h.Stride]) {
			return bad(at, "a chunk that isn't live has bytes other than zeros")
		}
		at += h.Stride
	}
	return nil
}

// checkNumbers returns the first wrong place in the stack of free chunks' numbers, and the error,
// or "". At the bottom are the chunks never used, the last chunk first; above them each other free
// chunk once.
func checkNumbers(numbers, states []byte, fresh, free uint32) (place uint32, what string) {
	number := func(place uint32) uint32 { return binary.LittleEndian.Uint32(numbers[4*place:]) }
	count := uint32(len(states))
	for ; place < fresh; place++ {
		if number(place) != count-1-place {
			return place, fmt.Sprintf("has chunk %d in the place of chunk %d, which was never used",
				number(place), count-1-place)
		}
	}
	for ; place < free; place++ {
		n := number(place)
		if n >= count || states[count-1-n] != arena_c.ChunkFree {
			what = fmt.Sprintf("has chunk %d, which isn't free, or is listed twice", n)
			break
		}
		states[count-1-n] |= chunkSeen
	}
	for i := fresh; i < place; i++ {
		states[count-1-number(i)] &^= chunkSeen
	}
	return place, what
}

func isZero(b []byte) bool {
	for ; len(b) > len(zeros); b = b[len(zeros):] {
		if !bytes.Equal(b[:len(zeros)], zeros[:]) {
			return false
		}
	}
	return bytes.Equal(b, zeros[:len(b)])
}
