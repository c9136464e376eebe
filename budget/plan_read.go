package budget

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
)

// planFileMax is beyond every plan (64 regions with a page of note each), and below what a device file would give.
const planFileMax = 1 * MiB

// planFaultsMax is how many faults one error lists.
const planFaultsMax = 100

// ReadPlan reads a plan from a JSON file and checks it. Sizes are numbers of bytes or strings with KiB, MiB or GiB:
//
//	{"name": "handheld", "regions": [{"name": "level", "size": "40MiB", "note": "largest map + 10 %"}],
//	 "frame": {"buffers": 2, "size": "1MiB"}, "scratch": {"workers": 2, "size": "1MiB"}, "go_heap": "32MiB"}
//
// Further keys are "size", of which a region may have the "rest"; "slots" of a region; "base", an address; "limits"
// with "scopes", "pools", "owned" and "labels"; and what is demanded of the pages, each "off", "wished" or
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
//	handheld.json:9: scratch: invalid character '/' after object key:value pair; scratch begins at line 8
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
	for _, mark := range []string{"\xef\xbb\xbf", "\xff\xfe", "\xfe\xff"} { // of UTF-8 and UTF-16
		if bytes.HasPrefix(data, []byte(mark)) {
			return Plan{}, fmt.Errorf("%s1: the file begins with a byte order mark; save it as UTF-8 without one", place)
		}
	}
	r := newPlanReader(data)
	plan := r.plan()
	if !r.broken {
		for _, fault := range plan.faults() {
			if where := r.place(fault.key); !where.refused { // else that has been said
				r.fault(where.at, fault.key, "%s", fault.text)
			}
		}
	}
	if err := r.err(place); err != nil {
		return Plan{}, err
	}
	return plan, nil
}

// err is every fault in the order of the file, each behind the place of its line.
func (r *planReader) err(place string) error {
	slices.SortStableFunc(r.faults, func(a, b planPlaced) int { return cmp.Compare(a.at, b.at) })
	var errs []error
	for _, fault := range r.faults[:min(len(r.faults), planFaultsMax)] {
		key := fault.key
		if key != "" {
			key += ": "
		}
		errs = append(errs, fmt.Errorf("%s%d: %s%s", place, r.lineAt(fault.at), key, fault.text))
	}
	if more := len(r.faults) - len(errs); more > 0 {
		errs = append(errs, fmt.Errorf("and %d more", more))
	}
	return errors.Join(errs...)
}
