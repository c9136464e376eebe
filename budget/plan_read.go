package budget

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"unicode/utf8"
)

// planFileMax is beyond every plan (64 regions with a page of note each), and below what a device file would give.
const planFileMax = 1 * MiB

// planFaultsMax is how many faults one error lists.
const planFaultsMax = 100

// ReadPlan reads a plan from a JSON file and checks it. Sizes are numbers of bytes or strings with KiB, MiB or GiB:
//
//	{"name": "handheld", "regions": [{"name": "level", "size": "40MiB", "note": "largest map + 10 %"}],
//	 "frame": {"buffers": 2, "size": "1MiB"}, "pads": {"workers": 2, "size": "1MiB"}, "go_heap": "32MiB"}
//
// Further keys are "size", of which a region may have the "rest"; "slots" of a region; "base", an address; "limits"
// with "scopes", "pools", "held" and "accounts"; and what is demanded of the pages, each "off", "wished" or
// "required":
//
//	{"name": "server", "size": "96MiB", "regions": [{"name": "match", "size": "2MiB", "slots": 16},
//	 {"name": "cache", "size": "rest"}], "base": "0x200000000000",
//	 "pages": {"prefault": "required", "lock": "wished", "huge": "off", "guards": "off", "base": "required"}}
//
// Reading is strict: an unknown key, a key given twice, a value of another type, and anything after the plan is a
// fault. The error lists the faults in the order of the file, each on a line with its place; a fault in the JSON
// itself ends the reading, so that others may hide behind it:
//
//	handheld.json:7: regions[2].size: "-4MiB" is not a size (whole bytes, or as "4MiB" with KiB, MiB, GiB or TiB, or "rest")
//	handheld.json:9: found '/' inside the object opened at line 1; expected ',' or '}' (JSON has no comments)
//
// A file that cannot be read is "handheld.json: no such file or directory".
func ReadPlan(name string) (Plan, error) {
	data, err := readPlanFile(name)
	if pathError, ok := errors.AsType[*fs.PathError](err); ok {
		err = pathError.Err // which names the file, and so does this:
	}
	if err != nil {
		return Plan{}, fmt.Errorf("%s: %w", name, err)
	}
	return readPlan(name+":", data)
}

func readPlanFile(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, planFileMax+1))
	if err == nil && len(data) > planFileMax {
		err = fmt.Errorf("larger than %s, which no plan is", sizeText(planFileMax))
	}
	return data, err
}

// ParsePlan is ReadPlan for JSON in memory; its errors begin with "line 7:".
func ParsePlan(data []byte) (Plan, error) { return readPlan("line ", data) }

func readPlan(place string, data []byte) (Plan, error) {
	r := newPlanReader(data)
	plan := r.plan()
	r.checkText()
	if !r.broken {
		for _, fault := range plan.faults() {
			if !r.reported(fault.key) {
				r.faultAt(r.placeOf(fault.key), fault.key, "%s", fault.text)
			}
		}
	}
	if err := r.err(place); err != nil {
		return Plan{}, err
	}
	return plan, nil
}

func newPlanReader(data []byte) *planReader {
	return &planReader{data: data, want: wantValue, places: map[string]int{}, unread: map[string]bool{}}
}

// err is every fault, each behind the place of its line.
func (r *planReader) err(place string) error {
	var errs []error
	for _, fault := range r.faults {
		key := fault.key
		if key != "" {
			key += ": "
		}
		errs = append(errs, fmt.Errorf("%s%d: %s%s", place, r.lineAt(fault.at), key, fault.text))
	}
	if r.more > 0 {
		errs = append(errs, fmt.Errorf("and %d more", r.more))
	}
	return errors.Join(errs...)
}

// plan reads the plan, which is all that the data may hold.
func (r *planReader) plan() (p Plan) {
	for _, mark := range []string{"\xef\xbb\xbf", "\xff\xfe", "\xfe\xff"} { // of UTF-8 and UTF-16
		if bytes.HasPrefix(r.data, []byte(mark)) {
			r.breakOff("the file begins with a byte order mark; save it as UTF-8 without one")
		}
	}
	r.object("",
		planKey{"name", r.text(&p.Name)},
		planKey{"size", r.size(&p.Size)},
		planKey{"base", r.address(&p.Base)},
		planKey{"regions", r.regions(&p.Regions)},
		planKey{"frame", func(key string) {
			r.object(key, planKey{"buffers", r.count(&p.Frame.Buffers)}, planKey{"size", r.size(&p.Frame.Size)})
		}},
		planKey{"pads", func(key string) {
			r.object(key, planKey{"workers", r.count(&p.Pads.Workers)}, planKey{"size", r.size(&p.Pads.Size)})
		}},
		planKey{"limits", func(key string) {
			r.object(key, planKey{"scopes", r.count(&p.Limits.Scopes)}, planKey{"pools", r.count(&p.Limits.Pools)},
				planKey{"held", r.count(&p.Limits.Held)}, planKey{"accounts", r.count(&p.Limits.Accounts)})
		}},
		planKey{"pages", func(key string) {
			r.object(key, planKey{"prefault", r.demand(&p.Pages.Prefault)}, planKey{"lock", r.demand(&p.Pages.Lock)},
				planKey{"huge", r.demand(&p.Pages.Huge)}, planKey{"guards", r.demand(&p.Pages.Guards)},
				planKey{"base", r.demand(&p.Pages.Base)})
		}},
		planKey{"go_heap", r.size(&p.GoHeap)},
	)
	r.next() // the end
	return p
}

// regions reads the list of regions. Of too many it only keeps count.
func (r *planReader) regions(regions *[]Region) func(string) {
	return func(key string) {
		count := 0
		r.list(key, func(element string) {
			var region Region
			if count++; count > planRegionsMax {
				r.skip(r.next())
				return
			}
			r.object(element, planKey{"name", r.text(&region.Name)}, planKey{"size", r.sizeOrRest(&region.Size)},
				planKey{"slots", r.count(&region.Slots)}, planKey{"note", r.text(&region.Note)})
			*regions = append(*regions, region)
		})
		if count > planRegionsMax && !r.broken {
			r.faultAt(r.placeOf(key), key, planRegionsText, count, planRegionsMax)
		}
	}
}

// checkText finds a byte that is not UTF-8 in what was read: a string's meaning would quietly have another character there.
func (r *planReader) checkText() {
	for at := 0; at < r.at; {
		char, size := utf8.DecodeRune(r.data[at:])
		if char == utf8.RuneError && size == 1 {
			r.faultAt(at, "", "byte %#x is not UTF-8", r.data[at])
			return
		}
		at += size
	}
}
