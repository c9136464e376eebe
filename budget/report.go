package budget

import "github.com/upfront-mem/upfront/scope"

// RegionReport are the figures of a region or slot, a buffer of the frame, or a pad. Sizes are bytes.
type RegionReport struct {
	Name       string        `json:"name"`
	Size       uint64        `json:"size"`
	Used       uint64        `json:"used"`
	Peak       uint64        `json:"peak"`      // highest use since Open, temporaries included
	LoadPeak   uint64        `json:"load_peak"` // highest use since it was last emptied, temporaries included
	Free       uint64        `json:"free"`
	Objects    uint64        `json:"objects"`            // allocations that are live
	Finalizers uint64        `json:"finalizers"`         // that ran since Open
	PoolCap    uint64        `json:"pool_cap"`           // chunks of the pools that are open
	PoolPeak   uint64        `json:"pool_peak"`          // sum of their peaks
	Accounts   []scope.Usage `json:"accounts,omitempty"` // what subsystems hold (scope.Account)
}

// Report are the figures of a budget.
type Report struct {
	Name       string         `json:"name"`
	Size       uint64         `json:"size"`                  // bytes reserved, tables included
	Prefaulted bool           `json:"prefaulted"`            // every page was present at Open
	NotGranted []string       `json:"not_granted,omitempty"` // what the plan wished and the system refused: key and reason
	Regions    []RegionReport `json:"regions"`
	Beside     []RegionReport `json:"beside"` // frame and pads
	Leaks      Leaks          `json:"leaks"`
	Errors     []string       `json:"errors,omitempty"` // of finalizers whose contents a load replaced: the last 16
	ErrorCount int            `json:"error_count"`      // of them in all
	Plan       Plan           `json:"plan"`             // as opened, with its defaults filled in
}

const reportErrors = 16

// Report reads the figures as they are now; after Close, as they were then. Call it where the arenas may be used.
func (b *Budget) Report() Report {
	if b.closed.Load() {
		return b.last
	}
	return b.report()
}

func (b *Budget) report() Report {
	r := Report{Name: b.plan.Name, Size: b.Size(), Prefaulted: b.prefaulted, NotGranted: b.refused, ErrorCount: b.errorsN,
		Plan: b.Plan()}
	for _, region := range b.regions {
		r.Regions = append(r.Regions, region.report(&r.Leaks))
	}
	for _, st := range b.stacks()[len(b.regions):] {
		r.Beside = append(r.Beside, stackReport(st.Name(), st, &r.Leaks))
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, names := range b.leaks {
		r.Leaks.Scopes += len(names)
	}
	for _, err := range b.errors {
		r.Errors = append(r.Errors, err.Error())
	}
	return r
}

// Report are the figures of this region now.
func (r *OpenRegion) Report() RegionReport {
	if r.released() {
		return RegionReport{Name: r.name} // the figures are another owner's
	}
	if r.b.closed.Load() {
		return r.b.last.Regions[r.row]
	}
	return r.report(&Leaks{})
}

func (r *region) report(leaks *Leaks) RegionReport { return stackReport(r.name, r.stack, leaks) }

func stackReport(name string, st *scope.Stack, leaks *Leaks) RegionReport {
	s := st.Stats()
	leaks.Finalizers += s.Failed
	if st.Depth() == 0 {
		leaks.Held += s.Held
	}
	return RegionReport{Name: name, Size: s.Size, Used: s.Used, Peak: s.Peak, LoadPeak: s.PeakSince, Free: s.Free, Objects: s.Objects,
		Finalizers: s.Finalizers, PoolCap: s.PoolCap, PoolPeak: s.PoolPeak, Accounts: st.Accounts()}
}

// note keeps an error of old contents' finalizers for the report and gives it to the plan's hook.
func (b *Budget) note(err error) {
	if err == nil {
		return
	}
	b.mu.Lock()
	b.errorsN++
	if b.errors = append(b.errors, err); len(b.errors) > reportErrors {
		b.errors = b.errors[1:]
	}
	b.mu.Unlock()
	if b.plan.OnError != nil {
		b.plan.OnError(err)
	}
}
