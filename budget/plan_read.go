package budget

import (
	"slices"
	"strings"

	"github.com/upfront-mem/upfront/platform/jsonfile"
)

// planFileMax exceeds every plan (64 regions with a page of note each), and stops the reading of a
// device file.
const planFileMax = 1 * MiB

// ReadPlan reads a plan from a JSON file and checks it. Sizes are numbers of bytes, also as
// strings, or strings with KiB, MiB, GiB or TiB:
//
//	{"name": "handheld", "go_heap": "32MiB",
//	 "regions": [{"name": "level", "size": "40MiB", "note": "largest map + 10 %"}],
//	 "frame": {"buffers": 2, "size": "1MiB"}, "scratch": {"workers": 2, "size": "1MiB"}}
//
// The plan may also have a "size" (the size of one region may then be "rest"), a "base" (an
// address), and "limits" of "scopes", "pools", "owned" and "labels". A region may have "slots",
// "on", "state", "track" and limits of its own. Each demand of "pages" is "off", "wished" or
// "required":
//
//	{"name": "server", "size": "96MiB", "base": "0x200000000000",
//	 "regions": [{"name": "cache", "size": "rest"},
//	  {"name": "match", "size": "2MiB", "slots": 16, "limits": {"owned": 8}}],
//	 "pages": {"prefault": "required", "lock": "wished", "huge": "off", "guards": "off",
//	  "base": "required"}}
//
// A go_heap may also be "rest" ([Plan.GoHeap]), with a bound in "go_heap_max". "c_heap" is a size,
// or an object with the keys of [CHeapPlan]. A region's "trim" may be "empty", and "warn" is a
// share of the size:
//
//	{"name": "worker", "go_heap": "rest", "go_heap_max": "2GiB",
//	 "c_heap": {"size": "64MiB", "reserve": "1MiB", "runtime": "64KiB",
//	  "fronts": 4, "trim": "1s", "warn": "80%"},
//	 "regions": [{"name": "job", "size": "32MiB", "trim": "empty", "warn": "90%"}]}
//
// "quotas" are bytes that are counted and not held: a size, or the keys of [QuotaPlan], for each
// name:
//
//	{"name": "db", "quotas": {"upload": "32MiB",
//	  "query": {"size": "256MiB", "tenants": 64, "tenant": "64MiB", "enforce": false}}}
//
// "expected" is the use over time that pictures and checks compare with the measured use
// ([Expected]):
//
//	{"name": "pond", "regions": [{"name": "level", "size": "2MiB"}],
//	 "expected": [
//	  {"part": "level", "load": "1538KiB", "play": "1400KiB", "tolerance": "10%"},
//	  {"part": "level", "label": "frogs", "play": "96KiB", "tolerance": "25%"}]}
//
// ReadPlan is strict: it refuses an unknown or repeated key, a value of another type, and text
// after the plan. The error lists the mistakes of the form, and those that [Plan.Check] finds, in
// file order, each on a line with its place. A mistake in the JSON itself hides the others:
//
//	handheld.json:7: regions[2].slots: "many" is not a count (a whole number from 0)
//	handheld.json:9: invalid character '/' after object key:value pair
//
// The error for a missing file names it: "handheld.json: no such file or directory".
func ReadPlan(name string) (Plan, error) {
	data, err := jsonfile.ReadFile(name, planFileMax, "larger than "+sizeInPlan(planFileMax)+", the limit for a plan")
	if err != nil {
		return Plan{}, err
	}
	return readPlan(name+":", data)
}

// ParsePlan is [ReadPlan] for JSON in memory. Its errors begin with the line, such as "line 7:".
func ParsePlan(data []byte) (Plan, error) { return readPlan("line ", data) }

func readPlan(place string, data []byte) (Plan, error) {
	file, root := jsonfile.Parse(place, data)
	var plan Plan
	if root != nil {
		readValue(file, root, plan.keys())
		for _, fault := range plan.faults() {
			if where := file.Given(fault.key); !where.Refused { // else that error is already listed
				file.Fault(where.At, fault.key, "%s", fault.text)
			}
		}
	}
	if err := file.Err(); err != nil {
		return Plan{}, err
	}
	return plan, nil
}

func readValue(file *jsonfile.File, v *jsonfile.Value, into any) {
	switch into := into.(type) {
	case []planKey:
		var known []string
		for _, k := range into {
			known = append(known, k.key)
		}
		for m := range file.Members(v, known) {
			readValue(file, m, into[slices.Index(known, m.Name)].value)
		}
	case *CHeapPlan:
		if strings.HasPrefix(v.Text, "{") {
			readValue(file, v, into.keys())
			return
		}
		readValue(file, v, (*planSize)(&into.Size))
	case *[]QuotaPlan:
		for m := range file.Members(v, nil) {
			q := QuotaPlan{Name: m.Name}
			if strings.HasPrefix(m.Text, "{") {
				readValue(file, m, q.keys())
			} else {
				readValue(file, m, (*planSize)(&q.Size))
			}
			*into = append(*into, q)
		}
	case *[]RegionPlan:
		*into = readList(file, v, planRegionsMax, (*RegionPlan).keys)
	case *[]Expected:
		*into = readList(file, v, planExpectMax, (*Expected).keys)
	default:
		if err := planValue(v, into); err != nil {
			file.Refuse(v, err)
		}
	}
}

func readList[V any](file *jsonfile.File, v *jsonfile.Value, most int, keys func(*V) []planKey) (list []V) {
	count := 0
	for m := range file.Items(v) {
		if count++; count > most {
			continue // it only counts the values that are too many
		}
		var value V
		readValue(file, m, keys(&value))
		list = append(list, value)
	}
	if count > most {
		file.Fault(v.At, v.Path(), planManyText, count, most)
	}
	return list
}

// UnmarshalJSON is [ParsePlan] for a plan inside other JSON. Line numbers in its errors count from
// the plan's first line.
func (p *Plan) UnmarshalJSON(data []byte) error {
	plan, err := ParsePlan(data)
	if err == nil {
		*p = plan
	}
	return err
}
