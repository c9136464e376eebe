package budget

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"unicode/utf8"
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
//	{"name": "server", "size": "96MiB", "regions": [{"name": "cache", "size": "rest"},
//	 {"name": "match", "size": "2MiB", "slots": 16}], "base": "0x200000000000",
//	 "pages": {"prefault": "required", "lock": "wished", "huge": "off", "guards": "off", "base": "required"}}
//
// Reading is strict: an unknown key, a key given twice, a value of another type, and anything after the plan is a
// fault. The error lists the faults in the order of the file, each on a line with where it is; a fault in
// the JSON itself hides all others:
//
//	handheld.json:7: regions[2].size: "-4MiB" is not a size (whole bytes, or as "4MiB" with KiB, MiB, GiB or TiB, or "rest")
//	handheld.json:9: invalid character '/' after object key:value pair
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
		err = fmt.Errorf("larger than %s, which no plan is", sizeInPlan(planFileMax))
	}
	return data, err
}

// ParsePlan is ReadPlan for JSON in memory; its errors begin with "line 7:".
func ParsePlan(data []byte) (Plan, error) { return readPlan("line ", data) }

func readPlan(file string, data []byte) (Plan, error) {
	for _, mark := range []string{"\xef\xbb\xbf", "\xff\xfe", "\xfe\xff"} { // of UTF-8 and UTF-16
		if bytes.HasPrefix(data, []byte(mark)) {
			return Plan{}, fmt.Errorf("%s1: the file begins with a byte order mark; save it as UTF-8 without one", file)
		}
	}
	r := newPlanReader(data)
	var plan Plan
	if r.checkText(); r.faults == nil {
		r.value("", plan.keys())
		for _, fault := range plan.faults() {
			if where := r.given(fault.key); !where.refused { // else that has been said
				r.fault(where.at, fault.key, "%s", fault.text)
			}
		}
	}
	if err := r.err(file); err != nil {
		return Plan{}, err
	}
	return plan, nil
}

// err is every fault in the order of the file, each behind its line in the file.
func (r *planReader) err(file string) error {
	slices.SortStableFunc(r.faults, func(a, b planFaultAt) int { return cmp.Compare(a.at, b.at) })
	var errs []error
	for _, fault := range r.faults[:min(len(r.faults), planFaultsMax)] {
		key := fault.key
		if key != "" {
			key += ": "
		}
		errs = append(errs, fmt.Errorf("%s%d: %s%s", file, r.lineAt(fault.at), key, fault.text))
	}
	if more := len(r.faults) - len(errs); more > 0 {
		errs = append(errs, fmt.Errorf("and %d more", more))
	}
	return errors.Join(errs...)
}

// planReader reads a plan's JSON. What a value is and where it ends, encoding/json says; which key
// has it, and where that stands in the file, is said here. Keys are paths, as in regions[2].size.
type planReader struct {
	data    []byte
	decoder *json.Decoder
	values  map[string]planGiven
	faults  []planFaultAt
}

// planGiven is where a key's value begins, and whether it wasn't what the key wants.
type planGiven struct {
	at      int
	refused bool
}

// planFaultAt is a fault and where it is.
type planFaultAt struct {
	at int
	planFault
}

func newPlanReader(data []byte) *planReader {
	decoder := json.NewDecoder(bytes.NewReader(data))
	return &planReader{data: data, decoder: decoder, values: map[string]planGiven{}}
}

func (r *planReader) fault(at int, key, format string, args ...any) {
	r.faults = append(r.faults, planFaultAt{at, planFault{key, fmt.Sprintf(format, args...)}})
}

func (r *planReader) lineAt(offset int) int { return 1 + bytes.Count(r.data[:offset], []byte("\n")) }

// given is the value of a key, or the nearest one around it for a key that has none.
func (r *planReader) given(key string) planGiven {
	for {
		if value, found := r.values[key]; found || key == "" {
			return value
		}
		key = key[:max(strings.LastIndexAny(key, ".["), 0)]
	}
}

// next is the offset of what is read next.
func (r *planReader) next() int {
	at := int(r.decoder.InputOffset())
	return len(r.data) - len(bytes.TrimLeft(r.data[at:], " \t\r\n,:"))
}

// token reads a bracket or the name of a key.
func (r *planReader) token() json.Token {
	token, _ := r.decoder.Token() // checkText has read it all
	return token
}

// raw reads a whole value, as it stands in the file.
func (r *planReader) raw() (text json.RawMessage) {
	_ = r.decoder.Decode(&text)
	return text
}

// value reads the value of a key.
func (r *planReader) value(key string, into any) {
	at := r.next()
	r.values[key] = planGiven{at: at}
	switch into := into.(type) {
	case []planKey:
		if bytes.HasPrefix(r.data[at:], []byte("{")) {
			r.object(key, into)
			return
		}
	case *[]RegionPlan:
		if bytes.HasPrefix(r.data[at:], []byte("[")) {
			r.regions(key, into)
			return
		}
	}
	text := r.raw()
	if err := planValue(text, into); err != nil {
		r.values[key] = planGiven{at: at, refused: true}
		r.fault(at, key, "%s %v", planValueText(text), err)
	}
}

// each reads an object or a list, member by member.
func (r *planReader) each(member func()) {
	for r.token(); r.decoder.More(); {
		member()
	}
	r.token()
}

// object reads an object of known keys, each at most once.
func (r *planReader) object(key string, known []planKey) {
	given := make(map[string]bool, len(known))
	r.each(func() { r.member(key, given, known) })
}

func (r *planReader) member(parent string, given map[string]bool, known []planKey) {
	at := r.next()
	name, _ := r.token().(string)
	if parent != "" {
		parent += "."
	}
	i := slices.IndexFunc(known, func(k planKey) bool { return k.key == name })
	switch {
	case i < 0:
		var names []string
		for _, k := range known {
			names = append(names, k.key)
		}
		r.fault(at, parent+planKeyText(name), "no such key (there are %s)", strings.Join(names, ", "))
		r.raw()
	case given[name]:
		r.fault(at, parent+name, "given twice")
		r.raw()
	default:
		given[name] = true
		r.value(parent+name, known[i].value)
	}
}

// regions reads the list of regions. Of too many it only keeps count.
func (r *planReader) regions(key string, regions *[]RegionPlan) {
	count := 0
	r.each(func() {
		if count++; count > planRegionsMax {
			r.raw()
			return
		}
		var region RegionPlan
		r.value(fmt.Sprintf("%s[%d]", key, count-1), region.keys())
		*regions = append(*regions, region)
	})
	if count > planRegionsMax {
		r.fault(r.values[key].at, key, planRegionsText, count, planRegionsMax)
	}
}

// checkText finds what breaks the JSON, and a byte that is not UTF-8: a string would quietly have another
// character there. json.Unmarshal says to the byte what is wrong, an early end and anything after the plan
// among that.
func (r *planReader) checkText() {
	for at := 0; at < len(r.data); {
		char, size := utf8.DecodeRune(r.data[at:])
		if char == utf8.RuneError && size == 1 {
			r.fault(at, "", "byte %#x is not UTF-8", r.data[at])
			return
		}
		at += size
	}
	err := json.Unmarshal(r.data, new(json.RawMessage))
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok { // which counts the faulty byte, too
		at := min(max(int(syntax.Offset)-1, 0), len(bytes.TrimRight(r.data, " \t\r\n")))
		r.fault(at, "", "%v", err)
	}
}

// planKeyText writes a key that is none of ours; a strange one is quoted, so that it cannot disturb
// the message.
func planKeyText(name string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
	if name != "" && len(name) <= 40 && strings.Trim(name, plain) == "" {
		return name
	}
	return shortQuote(name)
}

// planValueText writes a value for a message.
func planValueText(text json.RawMessage) string {
	switch text[0] {
	case '{':
		return "an object"
	case '[':
		return "a list"
	}
	return planEcho(string(text))
}

// UnmarshalJSON is ParsePlan, so that a plan inside other JSON is read as strictly. Lines count from the plan's first.
func (p *Plan) UnmarshalJSON(data []byte) error {
	plan, err := ParsePlan(data)
	if err == nil {
		*p = plan
	}
	return err
}
