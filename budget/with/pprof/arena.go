package pprof

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/platform/jsonfile"
	"github.com/upfront-mem/upfront/scope"
)

// arena adds the samples of one arena: a region, a slot, a buffer of the frame or a scratch arena.
func (b *builder) arena(a budget.ArenaReport) error {
	self := b.place(a)
	for i, f := range ofArena {
		self.values[figures+i] = f.Of(&a)
	}
	self.values[inuseObjects] = a.Objects
	for _, u := range scopesOf(a) {
		s := b.below(self, "scope", u.Name)
		s.values[allocated], s.values[scopesPeak] = u.Allocated, u.Peak
		s.values[allocObjects], s.values[peakObjects] = u.AllocatedObjects, u.PeakObjects
		b.add(s)
	}
	for _, u := range a.Labels {
		s := b.below(self, "label", u.Name)
		s.values[labelsInuse], s.values[labelsAllocated], s.values[labelsPeak] = u.Bytes, u.Allocated, u.Peak
		b.add(s)
	}
	hold := b.names
	if len(a.Sites) != 0 {
		hold = b.sites
	}
	err := hold(self, a)
	b.add(self) // the rest
	return err
}

// names moves the arena's bytes to samples of scopes, and of labels below their scope if it is
// known.
func (b *builder) names(self *sample, a budget.ArenaReport) error {
	list := scopesOf(a)
	scopes, err := b.usages(self, "scope", list)
	if err != nil {
		return err
	}
	if home := holder(self, scopes, list); home != nil {
		labels, err := b.usages(home, "label", a.Labels)
		if err != nil {
			return err
		}
		scopes = append(scopes, labels...)
	}
	for _, s := range scopes {
		b.add(s)
	}
	return nil
}

// sites moves the arena's bytes to samples of lines of code.
func (b *builder) sites(self *sample, a budget.ArenaReport) error {
	for _, site := range a.Sites {
		s := self
		if site.Scope != "" {
			s = b.below(s, "scope", scopeName(a, site.Scope))
		}
		if site.Label != "" {
			s = b.below(s, "label", site.Label)
		}
		s = b.sample(s.frames, s.tags)
		if site.Type != "" {
			s.tags["type"] = jsonfile.Printable(site.Type)
		}
		for i := len(site.Made) - 1; i >= 0; i-- {
			s.frames = append(s.frames, call(site.Made[i]))
		}
		s.values[inuse], s.values[inuseObjects] = site.Bytes, site.Objects
		if err := self.lose(s); err != nil {
			return fmt.Errorf("its sites %w", err)
		}
		b.add(s)
	}
	return nil
}

// lose subtracts the bytes and objects of another sample from s. It fails if s has fewer.
func (s *sample) lose(to *sample) error {
	for _, column := range []int{inuse, inuseObjects} {
		if to.values[column] > s.values[column] {
			return fmt.Errorf("have more %s than it has", types[column].Unit)
		}
		s.values[column] -= to.values[column]
	}
	return nil
}

// call returns the frame of a line of code: "main.load /pond/main.go:19".
func call(text string) frame {
	text = jsonfile.Printable(text)
	name, place, _ := strings.Cut(text, " ")
	file, number, _ := strings.Cut(place, ":")
	line, err := strconv.ParseInt(number, 10, 32)
	if err != nil || line < 0 {
		return frame{name: text}
	}
	return frame{name: name, file: file, line: line}
}

func scopesOf(a budget.ArenaReport) []scope.Usage {
	list := slices.Clone(a.Scopes)
	for i := range list {
		list[i].Name = scopeName(a, list[i].Name)
	}
	return list
}

// scopeName returns the name of a scope. A load's scope has the name of its slot; here it has the
// region's.
func scopeName(a budget.ArenaReport, name string) string {
	if name == a.Name {
		return a.Part
	}
	return name
}

// place returns a sample of the arena itself: "level" is in the budget, "match 3" in region match,
// "frame 0" in the frame.
func (b *builder) place(a budget.ArenaReport) *sample {
	self := b.sample(b.root, map[string]string{"budget": b.root[0].file})
	part, name := shown(a.Part), shown(a.Name)
	outer, inner := part, name
	switch a.Kind {
	case "slot":
		outer, inner = "region "+part, "slot "+name
	case "region":
		outer, inner = "region "+part, ""
	}
	file := b.root[0].file + "/" + part
	self.frames = append(self.frames, frame{name: outer, file: file})
	self.tags["region"] = part
	if inner != "" {
		self.frames = append(self.frames, frame{name: inner, file: file + "/" + strconv.Itoa(a.Index)})
		self.tags["arena"] = name
	}
	return self
}

// usages moves the bytes of names from the arena's sample to samples below it.
func (b *builder) usages(from *sample, kind string, list []scope.Usage) (below []*sample, err error) {
	for _, u := range list {
		s := b.below(from, kind, u.Name)
		below = append(below, s)
		s.values[inuse], s.values[inuseObjects] = u.Bytes, u.Objects
		if err := from.lose(s); err != nil {
			return nil, fmt.Errorf("its %ss %w: %s", kind, err, s.tags[kind])
		}
	}
	return below, nil
}

// holder returns the sample that labels are below: the only scope that holds bytes, or the arena if
// scopes aren't counted. It returns nil if several scopes or none hold bytes, since the report
// doesn't say which scope has a label.
func holder(self *sample, scopes []*sample, list []scope.Usage) (one *sample) {
	if len(list) == 0 {
		return self
	}
	for i, u := range list {
		switch {
		case u.Bytes == 0:
		case one != nil:
			return nil
		default:
			one = scopes[i]
		}
	}
	return one
}
