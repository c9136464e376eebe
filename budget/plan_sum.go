package budget

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"

	"github.com/upfront-mem/upfront/scope"
)

// planParts is the bytes that each kind of part takes when it is laid out. What is beyond uint64 is its largest: a
// faulty plan is added up, too.
type planParts struct{ regions, frame, pads, guards uint64 }

// parts adds up all but a region that takes the rest.
func (p Plan) parts() (sum planParts) {
	for _, r := range p.Regions {
		if r.Size != Rest {
			sum.regions = planAdd(sum.regions, planTimes(r.rows(), planRound(r.Size)))
		}
	}
	sum.frame = planTimes(planCount(p.Frame.Buffers), planRound(p.Frame.Size))
	sum.pads = planTimes(p.Pads.rows(), planRound(p.Pads.Size))
	sum.guards = planTimes(p.rows(), p.guard())
	return sum
}

func (s planParts) total() uint64 {
	return planAdd(planAdd(s.regions, s.frame), planAdd(s.pads, s.guards))
}

// text is for a message: the total and what it is made of.
func (s planParts) text() string {
	guards := ""
	if s.guards != 0 {
		guards = ", guards " + sizeText(s.guards)
	}
	return fmt.Sprintf("%s (regions %s, frame %s, pads %s%s; each rounded up to %s)", sizeText(s.total()), sizeText(s.regions),
		sizeText(s.frame), sizeText(s.pads), guards, sizeText(planEdge))
}

// total is the bytes of all parts when they are laid out, tables not counted: at most Size when that is given. The
// plan is a resolved one.
func (p Plan) total() uint64 { return p.parts().total() }

// rows is the number of arenas: each slot, buffer and pad is one.
func (p Plan) rows() (rows uint64) {
	for _, r := range p.Regions {
		rows = planAdd(rows, r.rows())
	}
	return planAdd(rows, planAdd(planCount(p.Frame.Buffers), p.Pads.rows()))
}

// goTables is what the arenas' tables on the Go side take of the Go heap, about, in whole edges.
func (p Plan) goTables() uint64 {
	tables, _ := p.tableBytes()
	return planRound(planTimes(p.rows(), tables))
}

// tableBytes is what those of one arena take, and what checked builds add.
func (p Plan) tableBytes() (tables, sites uint64) {
	l := p.Limits.orDefault()
	st := scope.Stack{Held: int(planCount(l.Held)), Names: int(planCount(l.Accounts))}
	return st.TableBytes(planCount(l.Scopes))
}

func (r Region) rows() uint64 { return max(1, planCount(r.Slots)) }

func (p Pads) rows() uint64 { return planTimes(planCount(p.Workers), planPadsEach) }

// guard is the bytes behind each arena that nobody may touch.
func (p Plan) guard() uint64 {
	if p.Pages.Guards <= Off {
		return 0
	}
	return planEdge
}

// sums checks what the parts come to, unless one of them is faulty itself.
func (f *planFaults) sums(p Plan) {
	if slices.ContainsFunc(*f, func(fault planFault) bool { return planSummand(fault.key) }) {
		return
	}
	if rows := p.rows(); rows > planRowsMax {
		most := 0
		for i, r := range p.Regions {
			if r.Slots > p.Regions[most].Slots {
				most = i
			}
		}
		f.add(fmt.Sprintf("regions[%d].slots", most), "%d, the most of all; with each slot, buffer and pad there are %d arenas, "+
			"and a budget has at most %d", p.Regions[most].Slots, rows, planRowsMax)
	}
	rest, parts := p.rest(), p.parts()
	least, size, need := parts.total(), planRound(min(p.Size, planSizeMax)), parts.text()
	if rest >= 0 {
		least = planAdd(least, planEdge)
		need += fmt.Sprintf(", and regions[%d], which has the rest, %s or more", rest, sizeText(planEdge))
	}
	switch {
	case least > planSizeMax:
		f.add("regions", "the parts need %s; a budget has at most %s", need, sizeText(planSizeMax))
	case p.Size == 0:
	case rest >= 0 && least > size:
		f.add("size", "%s leaves no rest: the parts need %s; %s more would do", sizeText(p.Size), need, sizeText(least-p.Size))
	case rest < 0 && least > p.Size:
		f.add("size", "%s is less than the parts need: %s", sizeText(p.Size), need)
	}
	if p.Base < planBaseEnd && p.Base != 0 && max(least, size) > planBaseEnd-p.Base {
		f.add("base", "%s; the parts need %s from there, and addresses end at %s", addressText(p.Base), sizeText(max(least, size)),
			addressText(planBaseEnd))
	}
}

// planSummand tells whether the sum depends on the key.
func planSummand(key string) bool {
	switch key {
	case "regions", "frame.buffers", "pads.workers":
		return true
	}
	return strings.HasSuffix(key, ".size") || strings.HasSuffix(key, ".slots")
}

// rest is the index of the region that takes the rest, or -1.
func (p Plan) rest() int {
	return slices.IndexFunc(p.Regions, func(r Region) bool { return r.Size == Rest })
}

// resolved is a checked plan as it is laid out: a size for the region that takes the rest, and every default filled
// in. The plan's size is rounded up when something takes the rest of it: the parts are exactly that then.
func (p Plan) resolved() Plan {
	p.Regions = slices.Clone(p.Regions)
	if rest := p.rest(); rest >= 0 {
		p.Size = planRound(p.Size)
		p.Regions[rest].Size = p.Size - p.total()
	}
	p.Limits = p.Limits.orDefault()
	p.Pages = p.Pages.orDefault(p.Base)
	return p
}

// orDefault fills in the limits that are 0.
func (l Limits) orDefault() Limits {
	return Limits{Scopes: cmp.Or(l.Scopes, 64), Pools: cmp.Or(l.Pools, 64), Held: cmp.Or(l.Held, 256), Accounts: cmp.Or(l.Accounts, 32)}
}

// planRound rounds a size up to the next edge.
func planRound(size uint64) uint64 {
	if size > math.MaxUint64-planEdge {
		return math.MaxUint64
	}
	return (size + planEdge - 1) &^ (planEdge - 1)
}

func planAdd(a, b uint64) uint64 {
	sum, carry := bits.Add64(a, b, 0)
	if carry != 0 {
		return math.MaxUint64
	}
	return sum
}

func planTimes(a, b uint64) uint64 {
	high, product := bits.Mul64(a, b)
	if high != 0 {
		return math.MaxUint64
	}
	return product
}

// planCount is a count as a factor; a negative one is a fault, and nothing.
func planCount(count int) uint64 { return uint64(max(0, count)) }
