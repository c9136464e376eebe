package budget

import (
	"fmt"
	"strings"
)

// CheckAll looks for writes where nobody had a right to write, in all of the budget. In every build it checks the control
// words, as Walk does. In memdebug builds it checks too each byte that nobody has any more, or ever: the gap between two
// objects, and behind each chunk of a pool; what was closed, rewound or put. The error is the first damage in order of
// address: where, what lives or lived there, who made it and who gave it back, what was expected and what is there.
//
// The same checks are made of what a scope had when it closes, of a chunk at Put and Get, and of bytes as they are handed
// out, those that nobody had yet among them; what these find ends the program. CheckAll narrows down when it was written:
// put it between two steps of a tick. Writes between the objects within one allocation stay unseen, those of heaps, stacks
// and rings over a block among them; these have checks of their own.
//
// Workers must not allocate meanwhile. Cost: in memdebug builds O(bytes that were ever handed out where regions lie now).
func (b *Budget) CheckAll() error {
	defer forgive()()
	if b.closed.Load() {
		return fmt.Errorf("budget %q: CheckAll: %w", b.plan.Name, ErrClosed)
	}
	if _, err := b.Walk(); err != nil {
		return err
	}
	if text := b.table.Damage(); text != "" {
		return fmt.Errorf("budget %q: %s", b.plan.Name, strings.TrimSuffix(text, "\n"))
	}
	return nil
}
