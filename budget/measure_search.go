package budget

import "github.com/upfront-mem/upfront/scope"

// searchPart is the search for the least size of a part of the plan.
type searchPart struct {
	sizedPart
	wide   uint64 // what it had in the wide plan
	full   uint64 // the largest size that was full
	enough uint64 // the least that was enough
	step   uint64
}

// searchStep is the first step to a larger size.
const searchStep = 64

// raise makes the next plan larger where it was full. It returns a full that can't be helped: of what had as much before
// as there ever was.
func (m *measurement) raise(fulls []*scope.FullError) *scope.FullError {
	for _, full := range fulls {
		raised := m.tight.Limits.raise(full, full.Need)
		for i := range m.parts {
			if part := &m.parts[i]; part.key == full.Key {
				raised = part.raise(full)
			}
		}
		if !raised {
			return full
		}
	}
	return nil
}

// raise is false when the size was that of the wide plan already.
func (p *searchPart) raise(full *scope.FullError) bool {
	tried := full.Size
	if tried >= p.wide {
		return false
	}
	if tried < *p.size {
		return true // another full of this run has raised it
	}
	p.full = max(p.full, tried)
	if p.enough <= p.full { // it isn't the same each time
		p.enough = p.wide
	}
	p.step = max(searchStep, 2*p.step)
	*p.size = max(p.full+1, min(max(full.Need, p.full+p.step), p.middle()))
	return true
}

func (p *searchPart) middle() uint64 { return p.full + (p.enough-p.full)/2 }

// lower makes the next plan smaller where that may do, after a run for which this one was enough. It is false when there is
// nothing more to try.
func (m *measurement) lower(t trial) (more bool) {
	peaks, _, err := t.report.peaks()
	for i := range m.parts {
		if err == nil && m.parts[i].lower(peaks[i], t.temps[i]) {
			more = true
		}
	}
	return more
}

func (p *searchPart) lower(peak uint64, temps bool) bool {
	p.enough = *p.size
	next := max(1, peak)
	if temps { // their pieces are smaller where there is less room
		p.step = max(1, 2*p.step)
		next = min(next, max(p.enough-min(p.step, p.enough), p.middle()))
	}
	*p.size = max(min(next, p.enough), p.full+1)
	return *p.size < p.enough
}

// raise makes the limit that was full so many. It is false when it was another thing, or the limit is
// the largest already.
func (l *Limits) raise(full *scope.FullError, to uint64) bool {
	for _, limit := range l.byKey() {
		if limit.key == full.Key {
			*limit.limit = max(*limit.limit, int(min(to, planLimitMax)))
			return full.Size < planLimitMax
		}
	}
	return false
}
