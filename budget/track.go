package budget

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/platform"
)

// track starts the system's tracking of written pages for the regions that want it. A refusal is a
// line of the report.
func (b *Budget) track(regions []*region) {
	for _, r := range regions {
		if !r.track {
			continue
		}
		var err error
		if r.tracker, err = b.trackOne(uint64(r.index)); err != nil {
			b.mu.Lock()
			r.untracked = fmt.Sprintf("regions[%d].track: region %s is compared page by page: %v", r.level, r.name, err)
			b.mu.Unlock()
		}
	}
}

func (b *Budget) trackOne(row uint64) (*platform.Tracker, error) {
	if b.foreign() {
		return nil, errGiven
	}
	if b.mirror != nil {
		return nil, errors.New("this build keeps the bytes at other addresses")
	}
	from, to := b.table.Start(row), (b.table.End(row)+arena_c.Edge-1)&^(arena_c.Edge-1)
	return platform.Track(unsafe.Add(b.memory.Base(), from), to-from)
}

// untracked returns a line for each region that wants tracking and has none, with the reason. Any
// goroutine may call it.
func (b *Budget) untracked() (list []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range b.regions {
		if r.untracked != "" {
			list = append(list, r.untracked)
		}
	}
	return list
}

func (b *Budget) untrack(regions []*region) error {
	var errs []error
	for _, r := range regions {
		if r.tracker != nil {
			errs = append(errs, r.tracker.Close())
			r.tracker = nil
		}
		b.mu.Lock()
		r.untracked = ""
		b.mu.Unlock()
	}
	return errors.Join(errs...)
}
