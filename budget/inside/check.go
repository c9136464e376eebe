package inside

import (
	"fmt"
	"strings"

	"github.com/upfront-mem/upfront/arena_c"
)

// Check returns an error if c, which may come from a file, contradicts itself. Objects and their
// padding must follow each other and add up to the used bytes. The parts of an inner arena must add
// up to its size. A pool must have a state for each chunk.
func (c *Contents) Check() error {
	if c.Size >= arena_c.OffsetMax || c.Cursor > c.Limit || c.Limit > c.Size || c.Used != c.Cursor+c.Temp() {
		return fmt.Errorf("inside of %s: used %d, cursor %d and limit %d of %d bytes contradict each other", c.Arena,
			c.Used, c.Cursor, c.Limit, c.Size)
	}
	at, end := uint64(0), c.Cursor
	for i := range c.Spans {
		t := &c.Spans[i]
		if at == c.Cursor && end == c.Cursor {
			at, end = c.Limit, c.Size
		}
		if t.Padding > end-at || t.Offset != at+t.Padding || t.Size > end-t.Offset {
			return fmt.Errorf("inside of %s: \"spans[%d]\" (%d bytes from %d on) doesn't fit after %d", c.Arena, i,
				t.Size, t.Offset, at)
		}
		if err := t.check(); err != nil {
			return fmt.Errorf("inside of %s: \"spans[%d]\": %w", c.Arena, i, err)
		}
		at = t.Offset + t.Size
	}
	if at == c.Cursor && end == c.Cursor {
		at, end = c.Limit, c.Size
	}
	if at != end {
		return fmt.Errorf("inside of %s: no object covers %d to %d", c.Arena, at, end)
	}
	return nil
}

func (t *Span) check() error {
	if p := t.Pool; p != nil {
		if p.Count != uint64(len(p.States)) || p.Live > p.Count || p.Stride != 0 && p.Count > t.Size/p.Stride {
			return fmt.Errorf("a pool of %d chunks of %d bytes, %d live, has %d bytes and the states of %d", p.Count,
				p.Stride, p.Live, t.Size, len(p.States))
		}
		if strings.Trim(p.States, "-#.~x?") != "" {
			return fmt.Errorf("a pool's chunks have unknown states: %.20q", p.States)
		}
		for _, index := range p.Next {
			if uint64(index) >= p.Count {
				return fmt.Errorf("a pool of %d chunks gives chunk %d", p.Count, index)
			}
		}
	}
	at := uint64(0)
	for i := range t.Parts {
		if p := &t.Parts[i]; p.Offset != at || p.Size > t.Size-at {
			return fmt.Errorf("parts[%d] (%d bytes from %d on) doesn't fit after %d", i, p.Size, p.Offset, at)
		}
		at += t.Parts[i].Size
	}
	if at != t.Size && t.Parts != nil {
		return fmt.Errorf("no part covers %d to %d", at, t.Size)
	}
	return nil
}
