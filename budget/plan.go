package budget

import (
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"
)

// Sizes in bytes.
const (
	KiB = 1 << 10
	MiB = 1 << 20
	GiB = 1 << 30
)

// Plan describes a budget: names and sizes, all in bytes. It is checked whole before anything is mapped. Every region, frame
// buffer and pad begins at a multiple of 64 KiB, on every target; a plan's sizes are rounded up to that when it is laid out.
type Plan struct {
	Name    string   // 1 to 31 bytes of a-z, 0-9, _ and -
	Size    uint64   // what all parts together may have; 0: their sum
	Regions []Region // 1 to 64, bottom first: rewinding one rewinds those after it
	Frame   Frame
	Pads    Pads
	Limits  Limits
	GoHeap  uint64 // the Go runtime's share beside the budget, at least 4 MiB; 0 leaves the collector alone

	OnError func(error) // told of errors that no call can return: those of finalizers whose contents a load replaced; may be nil
}

// Region is a named part of the budget. Name is as the plan's, unique, and neither "frame" nor "pads"; Note is for
// people.
type Region struct {
	Name string
	Size uint64
	Note string
}

// Frame gives 2 to 8 buffers that take turns, each of Size bytes; 0 buffers are no frame.
type Frame struct {
	Buffers int
	Size    uint64
}

// Pads gives each of 1 to 256 workers two pads, each of Size bytes; 0 workers are no pads.
type Pads struct {
	Workers int
	Size    uint64
}

// Limits is how many of each an arena may have open at once, 1 to 65535; 0 means 64 scopes, 64 pools, 256 held values
// and 32 accounts.
type Limits struct {
	Scopes   int
	Pools    int
	Held     int
	Accounts int
}

const (
	planEdge       = 64 * KiB
	planSizeMax    = 1 << 38 // 256 GiB: half of what a 39-bit address space has
	planNameMax    = 31
	planRegionsMax = 64
	planBuffersMin = 2
	planBuffersMax = 8
	planWorkersMax = 256
	planPadsEach   = 2
	planLimitMax   = 1<<16 - 1
	planHeapMin    = 4 * MiB
	planHeapMax    = 1 << 46 // together with a budget it fits the int64 of the runtime's memory limit
)

const planRegionsText = "%d of them; a plan has 1 to %d"

// Check says what is wrong with the plan, every fault at once, each on a line of its own that names the key:
//
//	plan "handheld": regions[2].size: 0 bytes; give a size
//
// It is nil for a plan that can be laid out. Whether the machine has the memory, Open will tell.
func (p Plan) Check() error {
	var errs []error
	for _, fault := range p.faults() {
		errs = append(errs, fmt.Errorf("plan %s: %s: %s", shortQuote(p.Name), fault.key, fault.text))
	}
	return errors.Join(errs...)
}

// planFault is one thing wrong: where and what.
type planFault struct{ key, text string }

// planFaults collects them in the order of the plan's keys.
type planFaults []planFault

func (f *planFaults) add(key, format string, args ...any) {
	*f = append(*f, planFault{key, fmt.Sprintf(format, args...)})
}

func (p Plan) faults() planFaults {
	var f planFaults
	f.name("name", p.Name)
	if p.Size > planSizeMax {
		f.add("size", "%s; a budget has at most %s", sizeText(p.Size), sizeText(planSizeMax))
	}
	if n := len(p.Regions); n < 1 || n > planRegionsMax {
		f.add("regions", planRegionsText, n, planRegionsMax)
	}
	first := make(map[string]int, len(p.Regions))
	for i, r := range p.Regions {
		key := fmt.Sprintf("regions[%d]", i)
		f.name(key+".name", r.Name)
		if r.Name == "frame" || r.Name == "pads" {
			f.add(key+".name", "%q names the %s beside the regions; choose another name", r.Name, r.Name)
		}
		if other, twice := first[r.Name]; !twice {
			first[r.Name] = i
		} else if r.Name != "" {
			f.add(key+".name", "%s is the name of regions[%d] already", shortQuote(r.Name), other)
		}
		f.size(key+".size", r.Size)
		if !utf8.ValidString(r.Note) {
			f.add(key+".note", "not UTF-8")
		}
	}
	f.siblings("frame.buffers", p.Frame.Buffers, planBuffersMin, planBuffersMax, "frame.size", p.Frame.Size)
	f.siblings("pads.workers", p.Pads.Workers, 1, planWorkersMax, "pads.size", p.Pads.Size)
	f.limit("limits.scopes", p.Limits.Scopes)
	f.limit("limits.pools", p.Limits.Pools)
	f.limit("limits.held", p.Limits.Held)
	f.limit("limits.accounts", p.Limits.Accounts)
	if p.GoHeap != 0 && (p.GoHeap < planHeapMin || p.GoHeap > planHeapMax) {
		f.add("go_heap", "%s; the Go runtime's share is 0 or %s to %s", sizeText(p.GoHeap), sizeText(planHeapMin), sizeText(planHeapMax))
	}
	p.sumFaults(&f)
	return f
}

// name checks the name of a plan or region.
func (f *planFaults) name(key, name string) {
	if len(name) < 1 || len(name) > planNameMax {
		f.add(key, "%s has %d bytes; a name has 1 to %d", shortQuote(name), len(name), planNameMax)
		return
	}
	for i := range len(name) {
		if c := name[i]; !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_' || c == '-') {
			f.add(key, "%q has %q; a name has a-z, 0-9, _ and - only", name, name[i:i+1])
			return
		}
	}
}

// size checks a size that must be given.
func (f *planFaults) size(key string, size uint64) {
	switch {
	case size == 0:
		f.add(key, "0 bytes; give a size")
	case size > planSizeMax:
		f.add(key, "%s; a budget has at most %s", sizeText(size), sizeText(planSizeMax))
	}
}

// siblings checks a count of equal parts: none without a size, or some with one.
func (f *planFaults) siblings(countKey string, count, least, most int, sizeKey string, size uint64) {
	switch {
	case count != 0 && (count < least || count > most):
		f.add(countKey, "%d; 0 or %d to %d", count, least, most)
	case count == 0 && size != 0:
		f.add(countKey, "0, but %s is %s; give both or neither", sizeKey, sizeText(size))
	}
	if count != 0 {
		f.size(sizeKey, size)
	}
}

func (f *planFaults) limit(key string, limit int) {
	if limit < 0 || limit > planLimitMax {
		f.add(key, "%d; 0 (the default) or 1 to %d", limit, planLimitMax)
	}
}

// sumFaults adds up the parts, unless one of them is faulty itself: nothing overflows then.
func (p Plan) sumFaults(f *planFaults) {
	if slices.ContainsFunc(*f, func(fault planFault) bool { return planSummand(fault.key) }) {
		return
	}
	regions, frame, pads := p.sizes()
	total := regions + frame + pads
	need := fmt.Sprintf("%s (regions %s, frame %s, pads %s; each rounded up to %s)",
		sizeText(total), sizeText(regions), sizeText(frame), sizeText(pads), sizeText(planEdge))
	switch {
	case total > planSizeMax:
		f.add("regions", "the parts need %s; a budget has at most %s", need, sizeText(planSizeMax))
	case p.Size != 0 && total > p.Size:
		f.add("size", "%s is less than the parts need: %s", sizeText(p.Size), need)
	}
}

// planSummand tells whether the sum depends on the key. The number of regions is one: 64 sizes cannot overflow.
func planSummand(key string) bool {
	switch key {
	case "regions", "frame.buffers", "frame.size", "pads.workers", "pads.size":
		return true
	}
	return len(key) > 5 && key[len(key)-5:] == ".size"
}

// sizes gives the bytes that each kind of part takes when it is laid out. The plan is a checked one.
func (p Plan) sizes() (regions, frame, pads uint64) {
	for _, r := range p.Regions {
		regions += planRound(r.Size)
	}
	frame = uint64(p.Frame.Buffers) * planRound(p.Frame.Size)
	pads = planPadsEach * uint64(p.Pads.Workers) * planRound(p.Pads.Size)
	return regions, frame, pads
}

// total is the bytes of all parts when they are laid out: at most Size when that is given. The plan is a checked one.
func (p Plan) total() uint64 {
	regions, frame, pads := p.sizes()
	return regions + frame + pads
}

// orDefault fills in the limits that are 0.
func (l Limits) orDefault() Limits {
	if l.Scopes == 0 {
		l.Scopes = 64
	}
	if l.Pools == 0 {
		l.Pools = 64
	}
	if l.Held == 0 {
		l.Held = 256
	}
	if l.Accounts == 0 {
		l.Accounts = 32
	}
	return l
}

// planRound rounds a size of at most planSizeMax up to the next edge.
func planRound(size uint64) uint64 { return (size + planEdge - 1) &^ (planEdge - 1) }
