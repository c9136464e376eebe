package budget

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/upfront-mem/upfront/platform/jsonfile"
)

// planKey is a key of a JSON object with its value: a pointer, or the keys of an object. Plans are
// read with these keys, not by json.Unmarshal, which takes the last of two equal keys and reports
// only one error, in terms of Go types.
type planKey = keyed[any]

func planKeys[V any](list []keyed[V]) (keys []planKey) {
	for _, k := range list {
		keys = append(keys, planKey{k.key, k.value})
	}
	return keys
}

// The kinds of a number in JSON.
type (
	planSize    uint64
	planRest    uint64 // a size or Rest
	planOff     uint64 // a size or NoProfile
	planPoint   uint64 // an expected size; a key with 0 would mean the same as no key
	planAddress uint64
	planTime    time.Duration
	planNot     bool // a key that is true by default
)

func (p *Plan) keys() []planKey {
	return []planKey{
		{"name", &p.Name},
		{"size", (*planSize)(&p.Size)},
		{"base", (*planAddress)(&p.Base)},
		{"regions", &p.Regions},
		{"frame", []planKey{{"buffers", &p.Frame.Buffers}, {"size", (*planSize)(&p.Frame.Size)}}},
		{"scratch", []planKey{{"workers", &p.Scratch.Workers}, {"each", &p.Scratch.Each},
			{"size", (*planSize)(&p.Scratch.Size)}}},
		{"limits", planKeys(p.Limits.byKey())},
		{"pages", planKeys(p.Pages.byKey())},
		{"go_heap", (*planRest)(&p.GoHeap)},
		{"go_heap_max", (*planSize)(&p.GoHeapMax)},
		{"c_heap", &p.CHeap},
		{"quotas", &p.Quotas},
		{"expected", &p.Expected},
	}
}

func (c *CHeapPlan) keys() []planKey {
	return []planKey{{"size", (*planSize)(&c.Size)}, {"reserve", (*planSize)(&c.Reserve)},
		{"runtime", (*planSize)(&c.Runtime)}, {"fronts", &c.Fronts},
		{"trim", (*planTime)(&c.Trim)}, {"warn", &c.Warn}, {"profile", (*planOff)(&c.Profile)}}
}

func (q *QuotaPlan) keys() []planKey {
	return []planKey{{"size", (*planSize)(&q.Size)}, {"in", &q.In}, {"tenants", &q.Tenants},
		{"tenant", (*planSize)(&q.Tenant)}, {"waiters", &q.Waiters}, {"piece", (*planSize)(&q.Piece)},
		{"warn", &q.Warn}, {"enforce", (*planNot)(&q.Observe)}}
}

func (r *RegionPlan) keys() []planKey {
	return []planKey{{"name", &r.Name}, {"size", (*planRest)(&r.Size)}, {"slots", &r.Slots}, {"on", &r.On},
		{"limits", planKeys(r.Limits.byKey())}, {"state", &r.State}, {"track", &r.Track}, {"trim", &r.Trim},
		{"warn", &r.Warn}, {"waiters", &r.Waiters},
		{"note", &r.Note}}
}

func (e *Expected) keys() []planKey {
	keys := []planKey{{"part", &e.Part}, {"label", &e.Label}}
	for _, point := range e.points() {
		keys = append(keys, planKey{point.key, (*planPoint)(point.value)})
	}
	return append(keys, planKey{"tolerance", &e.Tolerance})
}

// MarshalJSON writes the plan in the form that ReadPlan reads, with sizes as "4MiB" and without
// zeros. It doesn't check the plan.
func (p Plan) MarshalJSON() ([]byte, error) { return []byte(cmp.Or(planText(p.keys()), "{}")), nil }

// planText returns a value as JSON, or "" for a zero value.
func planText(value any) string {
	if reflect.Indirect(reflect.ValueOf(value)).IsZero() {
		return ""
	}
	switch value := value.(type) {
	case []planKey:
		var members []string
		for _, k := range value {
			if member := planText(k.value); member != "" {
				members = append(members, strconv.Quote(k.key)+":"+member)
			}
		}
		if members != nil {
			return "{" + strings.Join(members, ",") + "}"
		}
	case *[]RegionPlan:
		return planList(*value, (*RegionPlan).keys)
	case *[]Expected:
		return planList(*value, (*Expected).keys)
	case *[]QuotaPlan:
		var members []string
		for _, q := range *value {
			text := planText((*planSize)(&q.Size))
			if q != (QuotaPlan{Name: q.Name, Size: q.Size}) || text == "" {
				text = cmp.Or(planText(q.keys()), "{}")
			}
			name, _ := json.Marshal(q.Name) // never fails
			members = append(members, string(name)+":"+text)
		}
		if members != nil {
			return "{" + strings.Join(members, ",") + "}"
		}
	case *planNot:
		return "false"
	case *CHeapPlan:
		if *value == (CHeapPlan{Size: value.Size}) {
			return planText((*planSize)(&value.Size))
		}
		return planText(value.keys())
	case *Percent:
		return fmt.Sprintf(`"%d%%"`, *value)
	case *planTime:
		return strconv.Quote(time.Duration(*value).String())
	case *planSize:
		return strconv.Quote(sizeInPlan(uint64(*value)))
	case *planPoint:
		return planText((*planSize)(value))
	case *planRest:
		return planWord(uint64(*value), "rest", Rest)
	case *planOff:
		return planWord(uint64(*value), "off", NoProfile)
	case *planAddress:
		return strconv.Quote(addressText(uint64(*value)))
	default: // a string, a number or true
		text, _ := json.Marshal(value) // never fails
		return string(text)
	}
	return ""
}

// planWord returns a size, or the word that stands for one of its values, as JSON.
func planWord(size uint64, word string, value uint64) string {
	if size == value {
		return strconv.Quote(word)
	}
	return planText((*planSize)(&size))
}

// parseSizeOr reads a size, or the word that stands for one of its values.
func parseSizeOr(text, word string, value uint64) (size uint64, err error) {
	if text == word {
		return value, nil
	}
	size, err = ParseSize(text)
	switch {
	case size == value: // only the word means it
		err = errTooLarge
	case err == errNotSize:
		err = fmt.Errorf(`is not a size (whole bytes, or as "4MiB" with KiB, MiB, GiB or TiB, or %q)`, word)
	}
	return size, err
}

func planList[V any](list []V, keys func(*V) []planKey) string {
	var values []string
	for i := range list {
		values = append(values, cmp.Or(planText(keys(&list[i])), "{}"))
	}
	if values == nil {
		return ""
	}
	return "[" + strings.Join(values, ",") + "]"
}

// planValue reads one value of a plan that is neither object nor list.
func planValue(v *jsonfile.Value, into any) (err error) {
	text, notString := v.Str()
	quoted := notString == nil
	if !quoted {
		text = v.Text
	}
	switch into := into.(type) {
	case *string:
		if !quoted {
			return notString
		}
		*into = text
	case *int:
		count, wrong := strconv.ParseInt(text, 10, 32)
		switch {
		case wrong != nil || count < 0:
			return errNotCount
		case quoted:
			return fmt.Errorf("is a string; write %d", count)
		}
		*into = int(count)
	case *bool:
		if *into = text == "true"; quoted || !*into && text != "false" {
			err = errNotBool
		}
	case *planNot:
		if *into = text == "false"; quoted || !bool(*into) && text != "true" {
			err = errNotBool
		}
	case *planSize:
		*(*uint64)(into), err = ParseSize(text)
	case *planPoint:
		if *(*uint64)(into), err = ParseSize(text); err == nil && *into == 0 {
			err = errNotExpected
		}
		*into = max(*into, 1) // also of a refused value, which is no lack of a size
	case *planRest:
		*(*uint64)(into), err = parseSizeOr(text, "rest", Rest)
	case *planOff:
		*(*uint64)(into), err = parseSizeOr(text, "off", NoProfile)
	case *planAddress:
		digits, isHex := strings.CutPrefix(text, "0x")
		base := 10
		if quoted {
			base = 16
		}
		address, wrong := strconv.ParseUint(digits, base, 64)
		if *into = planAddress(address); wrong != nil || isHex != quoted {
			err = errNotAddress
		}
	case *Demand:
		if *into = Demand(text); *into != Off && !into.asks() {
			err = errNotDemand
		}
	case *TrimWhen:
		if *into = TrimWhen(text); *into != TrimEmpty {
			err = errNotTrim
		}
	case *Percent:
		digits, isPercent := strings.CutSuffix(text, "%")
		share, wrong := strconv.ParseUint(digits, 10, 16)
		if *into = Percent(share); wrong != nil || !isPercent || !quoted {
			err = errNotPercent
		}
	case *planTime:
		t, wrong := time.ParseDuration(text)
		if *into = planTime(t); wrong != nil || !quoted {
			err = errNotTime
		}
	}
	return err
}
