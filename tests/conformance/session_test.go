package conformance

import (
	"errors"
	"fmt"
	"slices"
	"unsafe"
)

// machine is an arena for the suite. An operation that its kind doesn't have is nil.
//
//   - alloc returns nil when the arena is full, and panics for a bad argument. A pool ignores both.
//   - resize returns nil and no error when the arena is full.
//   - check compares the arena's figures with the model.
//   - turn chooses the end of the next call: 0 for the near one, 1 for the far one.
type machine struct {
	alloc   func(size, align uint64) unsafe.Pointer
	release func(p unsafe.Pointer) error
	mark    func() uint64
	rewind  func(mark uint64) error
	reset   func()
	resize  func(p unsafe.Pointer, size uint64) (unsafe.Pointer, error)
	check   func() error
	turn    func(end int)
	zeroes  bool
	fifo    bool // release takes the oldest, not the newest
}

// model is the expected behaviour of the machine, in plain Go, over addresses.
type model interface {
	alloc(size, align uint64) (at, got uint64, answer answer) // got: the size of the block
	release(at uint64) bool                                   // accepted
	mark() uint64
	rewind(mark uint64) bool // accepted
	reset()
	live(at, size uint64) bool // still live after a free, rewind or reset
	room() uint64              // the largest allocation at align 1 that fits
}

// resizer is a model whose blocks may change their size.
type resizer interface {
	resized(at, size uint64) (to uint64, a answer)
}

type answer int

const (
	given answer = iota
	full
	refused // a caller's bug: the machine panics
)

// span is allocated memory, and its expected contents.
type span struct {
	p    unsafe.Pointer
	at   uint64
	size uint64
	fill byte
	end  int // of the arena
}

func (s span) bytes() []byte { return unsafe.Slice((*byte)(s.p), s.size) }

// session drives a machine and its model side by side. Each step returns the first difference.
type session struct {
	base, size uint64 // of the block
	machine    machine
	model      model
	spans      []span
	marks      [][2]uint64 // the machine's and the model's
	freed      []unsafe.Pointer
	fill       byte
	end        int // whose turn it is
}

func newSession(block []byte, m machine, mod model) *session {
	return &session{base: address(unsafe.Pointer(unsafe.SliceData(block))), size: uint64(len(block)), machine: m,
		model: mod}
}

func (s *session) turn(end int) {
	if s.machine.turn != nil {
		s.end = end
		s.machine.turn(end)
	}
}

func address(p unsafe.Pointer) uint64 { return uint64(uintptr(p)) }

// guarded is the machine's alloc, with a panic as an answer.
func (s *session) guarded(size, align uint64) (p unsafe.Pointer, a answer) {
	defer func() {
		if recover() != nil {
			a = refused
		}
	}()
	if p = s.machine.alloc(size, align); p == nil {
		return nil, full
	}
	return p, given
}

func (s *session) alloc(size, align uint64) error {
	at, got, want := s.model.alloc(size, align)
	p, have := s.guarded(size, align)
	if have != want {
		return fmt.Errorf("alloc(%d, %d): answer %d, want %d", size, align, have, want)
	}
	if want != given {
		return nil
	}
	n := span{p: p, at: address(p), size: got, end: s.end}
	if n.at < s.base || n.at+got < n.at || n.at+got > s.base+s.size {
		return fmt.Errorf("alloc(%d, %d): [%d, +%d) is not inside the block of %d", size, align, int64(n.at-s.base),
			got, s.size)
	}
	for _, other := range s.spans {
		if n.at < other.at+other.size && other.at < n.at+got {
			return fmt.Errorf("alloc(%d, %d): overlaps a live block", size, align)
		}
	}
	if n.at != at {
		return fmt.Errorf("alloc(%d, %d): at %d, want %d", size, align, n.at-s.base, at-s.base)
	}
	for _, b := range n.bytes() {
		if s.machine.zeroes && b != 0 {
			return errors.New("not zeroed")
		}
	}
	s.fill++
	n.fill = s.fill
	for i := range n.bytes() {
		n.bytes()[i] = n.fill
	}
	s.spans = append(s.spans, n)
	return nil
}

// settle checks the contents of all spans that were live, then forgets the dead ones.
func (s *session) settle() error {
	end := s.end
	s.spans = slices.DeleteFunc(s.spans, func(n span) bool {
		s.turn(n.end)
		return !s.model.live(n.at, n.size)
	})
	s.turn(end)
	return s.intact()
}

func (s *session) intact() error {
	for _, n := range s.spans {
		for i, b := range n.bytes() {
			if b != n.fill {
				return fmt.Errorf("byte %d of the block of %d at %d is %#x, not %#x", i, n.size, n.at-s.base, b, n.fill)
			}
		}
	}
	return nil
}

// release frees a live block, one that was freed before, or an address inside one.
func (s *session) release(which int, past uint64) error {
	if s.machine.release == nil {
		return nil
	}
	var p unsafe.Pointer
	switch {
	case which < len(s.spans) && s.machine.fifo:
		p = s.spans[which].p
	case which < len(s.spans):
		p = s.spans[len(s.spans)-1-which].p
	case len(s.freed) > 0:
		p = s.freed[which%len(s.freed)]
	default:
		return nil
	}
	// Past the end there may be another Go object, and the runtime forbids its address.
	if address(p)+past < s.base+s.size {
		p = unsafe.Add(p, past)
	}
	if err := s.intact(); err != nil {
		return err
	}
	want := s.model.release(address(p))
	if err := s.machine.release(p); (err == nil) != want {
		return fmt.Errorf("release(%d): %v, want accepted: %v", address(p)-s.base, err, want)
	}
	if want {
		s.freed = append(s.freed, p)
	}
	return s.settle()
}

// giveBack frees live blocks, until a block of no bytes, which the session doesn't count, is in the
// way.
func (s *session) giveBack() error {
	for before := -1; len(s.spans) != before && len(s.spans) > 0; {
		before = len(s.spans)
		s.turn(s.spans[before-1].end)
		if err := s.release(0, 0); err != nil {
			return err
		}
	}
	return nil
}

// resize changes the size of a live block, and compares its contents.
func (s *session) resize(which int, size uint64) error {
	if len(s.spans) == 0 {
		return nil
	}
	n := &s.spans[which%len(s.spans)]
	to, want := s.model.(resizer).resized(n.at, size)
	p, have := s.guardedResize(n.p, size)
	if have != want {
		return fmt.Errorf("resize to %d: answer %d, want %d", size, have, want)
	}
	if want != given {
		return s.intact()
	}
	if address(p) != to {
		return fmt.Errorf("resize to %d: at %d, want %d", size, address(p)-s.base, to-s.base)
	}
	old := n.size
	n.p, n.at, n.size = p, to, min(size, old)
	if err := s.intact(); err != nil {
		return err
	}
	n.size = size
	for i := old; i < size; i++ {
		n.bytes()[i] = n.fill
	}
	return s.intact()
}

// guardedResize is the machine's resize, with an error or a panic as an answer.
func (s *session) guardedResize(p unsafe.Pointer, size uint64) (to unsafe.Pointer, a answer) {
	defer func() {
		if recover() != nil {
			a = refused
		}
	}()
	to, err := s.machine.resize(p, size)
	switch {
	case err != nil:
		return nil, refused
	case to == nil:
		return nil, full
	}
	return to, given
}

func (s *session) mark() {
	if s.machine.mark != nil {
		s.marks = append(s.marks, [2]uint64{s.machine.mark(), s.model.mark()})
	}
}

// rewind rewinds to a mark plus some bytes, which may be no mark at all.
func (s *session) rewind(which int, past uint64) error {
	if s.machine.mark == nil || len(s.marks) == 0 {
		return nil
	}
	m := s.marks[len(s.marks)-1-which%len(s.marks)]
	if err := s.intact(); err != nil {
		return err
	}
	want := s.model.rewind(m[1] + past)
	if err := s.machine.rewind(m[0] + past); (err == nil) != want {
		return fmt.Errorf("rewind(%d): %v, want accepted: %v", m[1]+past-s.base, err, want)
	}
	return s.settle()
}

func (s *session) reset() error {
	if s.machine.reset == nil {
		return nil
	}
	s.machine.reset()
	s.model.reset()
	s.marks = s.marks[:0]
	return s.settle()
}

// fillUp allocates the last byte, and expects full after it.
func (s *session) fillUp() error {
	if err := s.alloc(s.model.room(), 1); err != nil {
		return err
	}
	return s.alloc(s.size, 1)
}

var alarming = []uint64{1 << 31, 1<<32 - 1, 1 << 32, 1<<32 + 1, 1<<38 - 1, 1 << 38, 1 << 40, 1 << 63, 1<<64 - 64,
	1<<64 - 8, 1<<64 - 1}

// run runs a program of three bytes a step.
func (s *session) run(program []byte) error {
	for i := 0; i+2 < len(program); i += 3 {
		if err := s.checked(s.step(program[i], program[i+1], program[i+2])); err != nil {
			return fmt.Errorf("step %d of %d, % x: %w", i/3, len(program)/3, program[i:i+3], err)
		}
	}
	return s.intact()
}

// checked returns the error of a step, or the first wrong figure after it.
func (s *session) checked(err error) error {
	if err == nil && s.machine.check != nil {
		return s.machine.check()
	}
	return err
}

// step runs an operation; its high bits choose the end, or a resize.
func (s *session) step(op, a, b byte) error {
	s.turn(int(op >> 7))
	switch {
	case s.machine.resize == nil || op >= 64:
	case op < 48:
		return s.resize(int(a), uint64(b)*uint64(op%16))
	default:
		return s.resize(int(a), alarming[int(b)%len(alarming)])
	}
	switch op % 16 {
	default:
		return s.alloc(uint64(a)>>(b>>5), 1<<(b%8))
	case 6:
		return s.alloc(uint64(a)*16, 1<<(b%17))
	case 7:
		return s.alloc(alarming[int(a)%len(alarming)], 1<<(b%17))
	case 8:
		return s.alloc(uint64(a), uint64(b)) // most of these alignments are invalid
	case 9:
		return s.fillUp()
	case 10, 11:
		return s.release(int(a)%4, 0)
	case 12:
		return s.release(int(a), uint64(b)%24)
	case 13:
		s.mark()
		return nil
	case 14:
		return s.rewind(int(a), uint64(b%4)*uint64(b/64))
	case 15:
		if a%8 != 0 {
			return nil
		}
		return s.reset()
	}
}
