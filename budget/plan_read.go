package budget

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
// Further keys are "size" and "limits" with "scopes", "pools" and "held". Reading is strict: an unknown key, a key given twice, a
// value of another type, and anything after the plan is a fault. The error lists every fault that was found, each on a line with its
// place, and after a fault in the JSON itself the reading ends:
//
//	handheld.json:7: regions[2].size: "-4MiB" is not a size (whole bytes, or as "4MiB" with KiB, MiB or GiB)
func ReadPlan(name string) (Plan, error) {
	file, err := os.Open(name)
	if err != nil {
		return Plan{}, fmt.Errorf("plan: %w", err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, planFileMax+1))
	if err != nil {
		return Plan{}, fmt.Errorf("plan: %w", err)
	}
	if len(data) > planFileMax {
		return Plan{}, fmt.Errorf("plan: %s is larger than %s", name, sizeText(planFileMax))
	}
	return readPlan(name+":", data)
}

// ParsePlan is ReadPlan for JSON in memory; its errors begin with "line 7:".
func ParsePlan(data []byte) (Plan, error) { return readPlan("line ", data) }

func readPlan(place string, data []byte) (Plan, error) {
	r := &planReader{place: place, data: data, lines: map[string]int{}, unread: map[string]bool{}}
	r.decoder = json.NewDecoder(bytes.NewReader(data))
	r.decoder.UseNumber()
	plan := r.plan()
	r.checkText()
	if !r.broken {
		for _, fault := range plan.faults() {
			if !r.reported(fault.key) {
				r.faultAt(r.lineOf(fault.key), fault.key, "%s", fault.text)
			}
		}
	}
	if len(r.faults) > 0 {
		if r.more > 0 {
			r.faults = append(r.faults, fmt.Errorf("and %d more", r.more))
		}
		return Plan{}, errors.Join(r.faults...)
	}
	return plan, nil
}

// plan reads the plan, which is all that the data may hold.
func (r *planReader) plan() (p Plan) {
	r.object("",
		planKey{"name", r.text(&p.Name)},
		planKey{"size", r.size(&p.Size)},
		planKey{"regions", r.regions(&p.Regions)},
		planKey{"frame", func(key string) {
			r.object(key, planKey{"buffers", r.count(&p.Frame.Buffers)}, planKey{"size", r.size(&p.Frame.Size)})
		}},
		planKey{"pads", func(key string) {
			r.object(key, planKey{"workers", r.count(&p.Pads.Workers)}, planKey{"size", r.size(&p.Pads.Size)})
		}},
		planKey{"limits", func(key string) {
			r.object(key, planKey{"scopes", r.count(&p.Limits.Scopes)}, planKey{"pools", r.count(&p.Limits.Pools)},
				planKey{"held", r.count(&p.Limits.Held)})
		}},
		planKey{"go_heap", r.size(&p.GoHeap)},
	)
	if !r.broken {
		if _, err := r.decoder.Token(); err != io.EOF {
			r.fault("", "there is more after the plan")
		}
	}
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
			r.object(element, planKey{"name", r.text(&region.Name)}, planKey{"size", r.size(&region.Size)},
				planKey{"note", r.text(&region.Note)})
			*regions = append(*regions, region)
		})
		if count > planRegionsMax {
			r.faultAt(r.lineOf(key), key, planRegionsText, count, planRegionsMax)
		}
	}
}

// checkText finds bytes that are not UTF-8: the decoder would quietly put another character in their place.
func (r *planReader) checkText() {
	for offset := 0; offset < len(r.data); {
		char, size := utf8.DecodeRune(r.data[offset:])
		if char == utf8.RuneError && size == 1 {
			r.faultAt(r.lineAt(int64(offset)), "", "byte %#x is not UTF-8", r.data[offset])
			return
		}
		offset += size
	}
}
