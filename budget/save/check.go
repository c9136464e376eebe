package save

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/upfront-mem/upfront/arena_c"
)

// check refuses an image from outside that no play could have left in what isn't the game's own:
// the words of pools and of the chain, bools, and what leads elsewhere. The other bytes may be any.
// Cost: O(chunks), a look at the bytes of those that aren't live, and what links cost; no Go
// allocation but the first time. pre: the state is of a state region. The image is as it was
// afterwards.
func (p *part) check(image []byte) error {
	words, state := image[p.words:p.from], image[p.from:p.to]
	for _, node := range p.nodes {
		if at := node.At - p.mark; !isZero(state[at:][:node.Size]) {
			return p.bad(at, "%d bytes of what happens at Close, which aren't zeros", node.Size)
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
			return p.bad(p.Size(), "not zero, what follows the state")
		}
	}
	return p.links.check(state)
}

func (p *part) bad(at uint64, text string, args ...any) error {
	why := fmt.Errorf(text, args...)
	return fmt.Errorf("region %s, byte %#x of the state: %w", p.saved.Name(), at, why)
}

// chunkSeen marks the state of a free chunk whose number came already.
const chunkSeen = 0x80

func (p *part) checkPool(pool *pool, words, state []byte) error {
	h := pool.header
	free, retired := binary.LittleEndian.Uint32(words), binary.LittleEndian.Uint32(words[4:])
	states := pool.states(state) // the last chunk's first
	count := uint32(len(states))
	bad := func(at uint64, text string, args ...any) error {
		why := fmt.Errorf(text, args...)
		return p.bad(at, "a pool of %d chunks of %d bytes: %w", count, h.Stride, why)
	}
	var of [256]uint32 // chunks in each state
	for _, s := range states {
		of[s]++
	}
	fresh, over := of[arena_c.ChunkFresh], of[arena_c.ChunkRetired]
	gets := fresh + of[arena_c.ChunkFree]
	switch at := pool.first - uint64(count); {
	case gets+over+of[arena_c.ChunkLive] != count:
		return bad(at, "%d chunks whose state is none", count-gets-over-of[arena_c.ChunkLive])
	case free != gets || retired != over:
		return bad(at, "%d free and %d retired by its words, and %d and %d by the states of its chunks",
			free, retired, gets, over)
	case retired != 0 && h.Handles == 0:
		return bad(at, "%d chunks retired, and it has no handles", retired)
	case bytes.Count(states[:fresh], []byte{arena_c.ChunkFresh}) != int(fresh):
		return bad(at, "a chunk that was never taken before one that was")
	}
	numbers := pool.first + h.Numbers - h.Chunks
	if place, what := checkNumbers(state[numbers:], states, fresh, free); what != "" {
		return bad(numbers+4*uint64(place), "its list of free chunks %s", what)
	}
	if h.Handles != 0 {
		from, own := numbers+4*uint64(count), uint32(pool.index)*(h.Handles+1)
		for i := range uint64(count) {
			g := binary.LittleEndian.Uint32(state[from+4*i:])
			if g&^h.Handles != own || g&h.Handles == 0 {
				return bad(from+4*i, "generation %#x of chunk %d, which this pool doesn't give", g, i)
			}
		}
	}
	at := pool.first
	for i := len(states) - 1; i >= 0; i-- {
		if states[i] != arena_c.ChunkLive && !isZero(state[at:at+h.Stride]) {
			return bad(at, "a chunk that isn't live has other bytes than zeros")
		}
		at += h.Stride
	}
	return nil
}

// checkNumbers says what is wrong with the stack of the numbers of free chunks, and at which place:
// those that were never taken lie below, the last chunk's first; above each other free one once.
func checkNumbers(numbers, states []byte, fresh, free uint32) (place uint32, what string) {
	number := func(place uint32) uint32 { return binary.LittleEndian.Uint32(numbers[4*place:]) }
	count := uint32(len(states))
	for ; place < fresh; place++ {
		if number(place) != count-1-place {
			return place, fmt.Sprintf("has chunk %d in the place of chunk %d, which was never taken",
				number(place), count-1-place)
		}
	}
	for ; place < free; place++ {
		n := number(place)
		if n >= count || states[count-1-n] != arena_c.ChunkFree {
			what = fmt.Sprintf("has chunk %d, which isn't free, or is there twice", n)
			break
		}
		states[count-1-n] |= chunkSeen
	}
	for i := fresh; i < place; i++ {
		states[count-1-number(i)] &^= chunkSeen
	}
	return place, what
}

// isZero looks at whole words.
func isZero(b []byte) bool {
	for at := 0; at < len(b); at += 8 {
		if binary.LittleEndian.Uint64(b[at:]) != 0 {
			return false
		}
	}
	return true
}
