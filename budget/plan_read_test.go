package budget

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/platform/jsonfile"
	"github.com/upfront-mem/upfront/scope"
)

func TestPlanFileFaults(t *testing.T) {
	name := filepath.Join(t.TempDir(), "handheld.json")
	require.NoError(t, os.WriteFile(name, []byte(`{
  "name": "handheld",
  "regions": [
    {"name": "init", "size": "4MiB"},
    {"name": "systems", "size": "12MiB"},
    {"name": "level",
     "size": "-4MiB", "Note": 1, "note": null}
  ],
  "frame": {"buffers": 1.5,
            "size": "1MiB"},
  "frame": {"what": [{}, [1, {"a": 2}]]},
  "scratch": {"workers": 2},
  "limits": [1, 2],
  "go heap": 5,
  "go_heap": 4096
}
`), 0o600))
	_, err := ReadPlan(name)
	require.Error(t, err)
	assert.Equal(t, strings.ReplaceAll(
		`FILE:7: regions[2].size: "-4MiB" is not a size (whole bytes, or as "4MiB" with KiB, MiB, GiB or TiB, or "rest")
FILE:7: regions[2].Note: no such key (there are name, size, slots, on, limits, state, track, trim, warn, waiters, note)
FILE:7: regions[2].note: null is not a string
FILE:9: frame.buffers: 1.5 is not a count (a whole number from 0)
FILE:11: frame: given twice
FILE:12: scratch.size: 0 bytes; give a size
FILE:13: limits: a list is not an object
FILE:14: "go heap": no such key (there are name, size, base, regions, frame, scratch, limits, pages, go_heap, go_heap_max, c_heap, quotas, expected)
FILE:15: go_heap: 4KiB is out of range: give 0 (no limit), "rest", or 4MiB to 64TiB`, "FILE", name), err.Error())
}

const oneLevel = `"regions":[{"name":"level","size":65536}]`

var planRefused = []struct{ data, fault string }{
	{`null`, "line 1: null is not an object"},
	{`[]`, "line 1: a list is not an object"},
	{`{"name":"a",` + oneLevel + `,"name":"b"}`, "line 1: name: given twice"},
	{`{"name":"a","regions":[{"name":"b","size":1,"size":2}]}`, "line 1: regions[0].size: given twice"},
	{`{"name":"a",` + oneLevel + `,"Size":1}`, "line 1: Size: no such key"},
	{`{"name":"a",` + oneLevel + `,"` + strings.Repeat("k", 41) + `":1}`, `line 1: "` + strings.Repeat("k", 40) +
		`"…: no such key`},
	{`{"name":"a",` + oneLevel + `,"a\nb":{"size":1}}`, `line 1: "a\nb": no such key`},
	{`{"name":7,` + oneLevel + `}`, "line 1: name: 7 is not a string"},
	{`{"name":"a",` + oneLevel + `,"size":true}`, "line 1: size: true is not a size"},
	{`{"name":"a",` + oneLevel + `,"size":1e6}`, "line 1: size: 1e6 is not a size"},
	{`{"name":"a",` + oneLevel + `,"size":0.5}`, "line 1: size: 0.5 is not a size"},
	{`{"name":"a",` + oneLevel + `,"size":-1}`, "line 1: size: -1 is not a size"},
	{`{"name":"a",` + oneLevel + `,"size":"-4"}`, `line 1: size: "-4" is not a size`},
	{`{"name":"a",` + oneLevel + `,"size":"é\u202e` + "\u202e" + `"}`, `line 1: size: "é\u202e` + "\ufffd" +
		`" is not a size`},
	{`{"name":"a",` + oneLevel + `,"size":"` + strings.Repeat("4", 59) + `0"}`,
		`size: "` + strings.Repeat("4", 59) + "… is too large for a size"},
	{`{"name":"a",` + oneLevel + `,"size":18446744073709551616}`,
		"line 1: size: 18446744073709551616 is too large for a size"},
	{`{"name":"a",` + oneLevel + `,"limits":{"scopes":"9"}}`, `line 1: limits.scopes: "9" is a string; write 9`},
	{`{"name":"a",` + oneLevel + `,"limits":{"scopes":"nine"}}`,
		`line 1: limits.scopes: "nine" is not a count (a whole number from 0)`},
	{`{"name":"a",` + oneLevel + `,"limits":{"scopes":2.0}}`, "line 1: limits.scopes: 2.0 is not a count"},
	{`{"name":"a",` + oneLevel + `,"limits":{"scopes":[2]}}`, "line 1: limits.scopes: a list is not a count"},
	{`{"name":"a",` + oneLevel + `,"limits":{"scopes":4294967297}}`,
		"line 1: limits.scopes: 4294967297 is not a count"},
	{`{"name":"a","regions":{}}`, "line 1: regions: an object is not a list"},
	{`{"name":"a","regions":[7]}`, "line 1: regions[0]: 7 is not an object"},
	{"{}", `line 1: name: "" has 0 bytes; a name has 1 to 31`},
	{`{"c_heap":"64MiB"}`, `line 1: name: "" has 0 bytes; a name has 1 to 31`},
	{`{"name":"a","regions":[{"name":"b","size":1,"note":"` + "\xff" + `"}]}`, "line 1: byte 0xff is not UTF-8"},

	// The Rest, slots, pages and the base.
	{`{"name":"a",` + oneLevel + `,"size":"rest"}`,
		`line 1: size: "rest" is not a size (whole bytes, or as "4MiB" with KiB, MiB, GiB or TiB)`},
	{`{"name":"a","c_heap":{"size":"4MiB","profile":"on"}}`, `line 1: c_heap.profile: "on" is not a size (whole ` +
		`bytes, or as "4MiB" with KiB, MiB, GiB or TiB, or "off")`},
	{`{"name":"a","c_heap":{"size":"4MiB","profile":18446744073709551615}}`, "line 1: c_heap.profile: " +
		"18446744073709551615 is too large"},
	{`{"name":"a",` + oneLevel + `,"frame":{"buffers":2,"size":"rest"}}`, `line 1: frame.size: "rest" is not a size (`},
	{`{"name":"a","size":1,"regions":[{"name":"b","size":18446744073709551615}]}`,
		"line 1: regions[0].size: 18446744073709551615 is too large for a size"},
	{`{"name":"a","size":1,"regions":[{"name":"b","size":"18446744073709551615"}]}`,
		`"18446744073709551615" is too large for a size`},
	{`{"name":"a","size":"all","regions":[{"name":"b","size":"rest"}]}`, `line 1: size: "all" is not a size`},
	{"{\"name\":\"a\",\n\"regions\":[{\"name\":\"b\",\"size\":\"rest\"}]}",
		`line 1: size: 0, but regions[0].size is "rest"; give the total size`},
	{"{\"name\":\"a\",\n\"size\":\"64KiB\",\"regions\":[{\"name\":\"b\",\"size\":1},\n" +
		"{\"name\":\"c\",\"size\":\"rest\"}]}",
		"line 2: size: 64KiB leaves no rest: the parts need 64KiB (regions 64KiB, frame 0, scratch 0; each rounded " +
			"up to 64KiB), and regions[1], which has the rest, 64KiB or more; 64KiB more would do"},
	{`{"name":"a","regions":[{"name":"b","size":1,"slots":"4"}]}`,
		`line 1: regions[0].slots: "4" is a string; write 4`},
	{`{"name":"a","regions":[{"name":"b","size":1,"slots":-4}]}`, "line 1: regions[0].slots: -4 is not a count"},
	{"{\"name\":\"a\",\"regions\":[{\"name\":\"b\",\"size\":1,\n\"slots\":4097}]}",
		"line 2: regions[0].slots: 4097 is out of range: give 0 (no slots) or 1 to 4096"},
	{`{"name":"a",` + oneLevel + `,"base":"200000"}`,
		`line 1: base: "200000" is not an address of 64 bits (a string as "0x200000000000", or a whole number)`},
	{`{"name":"a",` + oneLevel + `,"base":"0x"}`, `line 1: base: "0x" is not an address`},
	{`{"name":"a",` + oneLevel + `,"base":"0x-1"}`, `line 1: base: "0x-1" is not an address`},
	{`{"name":"a",` + oneLevel + `,"base":"0x0x10000"}`, `line 1: base: "0x0x10000" is not an address`},
	{`{"name":"a",` + oneLevel + `,"base":"0x10000000000000000"}`,
		`line 1: base: "0x10000000000000000" is not an address`},
	{`{"name":"a",` + oneLevel + `,"base":18446744073709551616}`,
		`line 1: base: 18446744073709551616 is not an address`},
	{`{"name":"a",` + oneLevel + `,"base":1e6}`, `line 1: base: 1e6 is not an address`},
	{`{"name":"a",` + oneLevel + `,"base":null}`, `line 1: base: null is not an address`},
	{`{"name":"a",` + oneLevel + `,"base":"high","pages":{"base":"required"}}`,
		`line 1: base: "high" is not an address`},
	{`{"name":"a",` + oneLevel + `,"pages":{"base":"required"}}`,
		"line 1: base: 0, but pages.base is required; give both or neither"},
	{`{"name":"a",` + oneLevel + `,"pages":"required"}`, `line 1: pages: "required" is not an object`},
	{`{"name":"a",` + oneLevel + `,"pages":{"swap":"off"}}`,
		"line 1: pages.swap: no such key (there are prefault, lock, huge, guards, base)"},
	{`{"name":"a","regions":[{"name":"b","size":1,"state":"true"}]}`,
		`line 1: regions[0].state: "true" is neither true nor false`},
	{`{"name":"a","regions":[{"name":"b","size":1,"state":1}]}`,
		`line 1: regions[0].state: 1 is neither true nor false`},
	{`{"name":"a",` + oneLevel + `,"pages":{"lock":true}}`,
		`line 1: pages.lock: true is not a demand ("off", "wished" or "required")`},
	{`{"name":"a",` + oneLevel + `,"pages":{"lock":"on"}}`, `line 1: pages.lock: "on" is not a demand`},
	{`{"name":"a",` + oneLevel + `,"pages":{"huge":"Off"}}`, `line 1: pages.huge: "Off" is not a demand`},
	{`{"name":"a",` + oneLevel + `,"pages":{"guards":"default"}}`, `line 1: pages.guards: "default" is not a demand`},
	{`{"name":"a",` + oneLevel + `,"pages":{"guards":""}}`, `line 1: pages.guards: "" is not a demand`},
	{`{"name":"a",` + oneLevel + `,"pages":{"base":2}}`, `line 1: pages.base: 2 is not a demand`},
	{`{"name":"a",` + oneLevel + `,"pages":{"lock":"off","lock":"off"}}`, `line 1: pages.lock: given twice`},

	// The expected use over time.
	{`{"name":"a",` + oneLevel + `,"expected":{"level":"1KiB"}}`, "line 1: expected: an object is not a list"},
	{`{"name":"a",` + oneLevel + `,"expected":["level"]}`, `line 1: expected[0]: "level" is not an object`},
	{`{"name":"a",` + oneLevel + `,"expected":[{"part":"level","play":1,"region":"level"}]}`,
		"line 1: expected[0].region: no such key (there are part, label, boot, load, play, tolerance)"},
	{`{"name":"a",` + oneLevel + `,"expected":[{"part":"level","play":1,"play":2}]}`,
		"line 1: expected[0].play: given twice"},
	{"{\"name\":\"a\"," + oneLevel +
		",\"expected\":[{\"part\":\"level\",\"play\":1},\n{\"part\":\"levels\",\"play\":1}]}",
		`line 2: expected[1].part: "levels" is no part of the plan: give a region, or the frame, scratch or c_heap that it has`},
	{`{"name":"a",` + oneLevel + `,"expected":[{"play":1}]}`, `line 1: expected[0].part: "" is no part of the plan`},
	{`{"name":"a",` + oneLevel + `,"expected":[{"part":7,"play":1}]}`, `line 1: expected[0].part: 7 is not a string`},
	{`{"name":"a",` + oneLevel + `,"expected":[{"part":"frame","play":1}]}`,
		`line 1: expected[0].part: "frame" is no part of the plan`},
	{`{"name":"a",` + oneLevel + `,"expected":[{"part":"scratch","play":1}]}`,
		`line 1: expected[0].part: "scratch" is no part of the plan`},
	{`{"name":"a",` + oneLevel + `,"expected":[{"part":"c_heap","play":1}]}`,
		`line 1: expected[0].part: "c_heap" is no part of the plan`},
	{"{\"name\":\"a\"," + oneLevel +
		",\"expected\":[{\"part\":\"level\",\"play\":1},{\"part\":\"level\",\"label\":\"a\",\"play\":1},\n" +
		"{\"part\":\"level\",\"label\":\"a\",\"load\":1}]}",
		"line 2: expected[2]: the same part and label as expected[1]"},
	{`{"name":"a",` + oneLevel + `,"expected":[{"part":"level"}]}`,
		"line 1: expected[0]: no size; give boot, load or play"},
	{`{"name":"a",` + oneLevel + `,"expected":[{"part":"level","play":"many"}]}`,
		`line 1: expected[0].play: "many" is not a size`},
	{`{"name":"a",` + oneLevel + `,"expected":[{"part":"level","load":"rest"}]}`,
		`line 1: expected[0].load: "rest" is not a size`},
	{`{"name":"a",` + oneLevel + `,"expected":[{"part":"level","boot":"0"}]}`,
		`line 1: expected[0].boot: "0" is no size to expect; leave the key out to expect nothing`},
	{`{"name":"a",` + oneLevel + `,"expected":[{"part":"level","play":1,"tolerance":10}]}`,
		`line 1: expected[0].tolerance: 10 is not a share (a string as "80%")`},
	{`{"name":"a",` + oneLevel + `,"expected":[{"part":"level","play":1,"tolerance":"100%"}]}`,
		"line 1: expected[0].tolerance: 100% is out of range: give 0 (none) or 1% to 99%"},
	{`{"name":"a",` + oneLevel + `,"c_heap":{"size":"1MiB","trim":"soon"}}`,
		`line 1: c_heap.trim: "soon" is not a time (a string as "1s" or "250ms")`},
	{`{"name":"a",` + oneLevel + `,"c_heap":{"size":"1MiB","trim":0}}`,
		`line 1: c_heap.trim: 0 is not a time (a string as "1s" or "250ms")`},
}

func TestPlanReadRefuses(t *testing.T) {
	for _, c := range planRefused {
		plan, err := ParsePlan([]byte(c.data))
		if assert.Error(t, err, c.data) {
			assert.Contains(t, err.Error(), c.fault)
			assert.NotContains(t, err.Error(), "\n", "one fault: %s", c.data)
		}
		assert.Zero(t, plan)
	}
}

// A fault of the JSON itself has its line; the text is that of encoding/json.
func TestPlanBrokenJSON(t *testing.T) {
	sameInEachBuild(t)
	refused := func(data, place string) {
		t.Helper()
		library := json.Unmarshal([]byte(data), new(any))
		require.Error(t, library, "control: the library's own reader refuses it: %s", data)
		plan, err := ParsePlan([]byte(data))
		require.EqualError(t, err, place+library.Error(), data)
		require.Zero(t, plan)
	}
	for _, c := range []struct{ data, place string }{
		{"", "line 1: "},
		{"\n\n ", "line 1: "},
		{"\n{\"name\":\n\n", "line 2: "},
		{"{\"regions\":\n[\n{\"size\":1}]\n", "line 3: "},
		{"{\"name\":\n\"abc", "line 2: "},
		{"{\"name\":\"a\"\n# my plan\n}", "line 2: "},
		{"{\"regions\":[{\"size\":1},\n]}", "line 2: "},
		{"{\n“name”: 4}", "line 2: "},
		{"{\"size\":\n\n4MiB}", "line 3: "},
		{"{\"size\": \n\x00}", "line 2: "},
		{"{\n\"name\": \"C:\\maps\"}", "line 2: "},
		{"{\"x\":" + strings.Repeat("[", 1_000_000), "line 1: "},
		{handheldJSON + "\n{}", "line 2: "},
		{handheldJSON + "\n}", "line 2: "},
	} {
		refused(c.data, c.place)
	}

	data, err := os.ReadFile("testdata/plans/every-key.json")
	require.NoError(t, err)
	broken := 0
	for at := range data {
		for _, change := range []string{"", "{", "}", "[", "]", ",", ":", "\"", "\\", "x", "7", "-", "\n", "\t"} {
			text := string(data[:at]) + change // cut off here
			for _, text := range []string{text, text + string(data[at+1:])} {
				syntax, ok := errors.AsType[*json.SyntaxError](json.Unmarshal([]byte(text), new(any)))
				if !ok || !utf8.ValidString(text) { // that is another fault
					continue
				}
				broken++
				before := text[:max(syntax.Offset, 1)-1]
				if strings.HasPrefix(syntax.Error(), "unexpected end") {
					before = strings.TrimSpace(text)
				}
				refused(text, fmt.Sprintf("line %d: ", 1+strings.Count(before, "\n")))
			}
		}
	}
	assert.Greater(t, broken, len(data))
	for _, data := range []string{"\xef\xbb\xbf" + handheldJSON, "\xff\xfe{\x00}\x00", "\xfe\xff\x00{\x00}"} {
		_, err := ParsePlan([]byte(data))
		assert.EqualError(t, err, "line 1: the file begins with a byte order mark; save it as UTF-8 without one")
	}
}

func TestPlanReadIsBounded(t *testing.T) {
	sameInEachBuild(t)
	deep := strings.Repeat("[", 1_000) + strings.Repeat("]", 1_000)
	_, err := ParsePlan([]byte(`{"x":` + deep + "," + handheldJSON[1:]))
	assert.ErrorContains(t, err, "line 1: x: no such key")
	assert.NotContains(t, err.Error(), "\n")

	many := strings.Repeat(`{"name":"UP"},`, 100_000)
	_, err = ParsePlan([]byte(`{"name":"a","regions":[` + many + `{}]}`))
	require.Error(t, err)
	assert.Contains(t, err.Error(), "line 1: regions: 100001 of them; a plan has at most 64")
	assert.Equal(t, jsonfile.MaxFaults, strings.Count(err.Error(), "\n"))
	assert.Regexp(t, `\nand 92 more$`, err.Error(), "64 names, 64 sizes, 63 twins and the list")

	_, err = ParsePlan([]byte(`{"name":"a",` + oneLevel + `,"expected":[` + strings.Repeat(`{},`, 100_000) + `{}]}`))
	assert.ErrorContains(t, err, "line 1: expected: 100001 of them; a plan has at most 512")
	assert.Regexp(t, `\nand 925 more$`, err.Error(), "512 parts, 512 sizes and the list")
}

// Each error begins with its place, the file, exactly once.
func TestPlanFileThatCannotBeRead(t *testing.T) {
	name := filepath.Join(t.TempDir(), "large.json")
	require.NoError(t, os.WriteFile(name, []byte(handheldJSON+strings.Repeat(" ", planFileMax-len(handheldJSON))),
		0o600))
	_, err := ReadPlan(name)
	assert.NoError(t, err, "at the limit")
	require.NoError(t, os.WriteFile(name, make([]byte, planFileMax+1), 0o600))
	_, err = ReadPlan(name)
	assert.EqualError(t, err, name+": larger than 1MiB, the limit for a plan")

	_, err = ReadPlan(name + ".none")
	refusal := func(name string) string {
		_, err := os.ReadFile(name)
		return err.(*os.PathError).Err.Error()
	}
	assert.EqualError(t, err, name+".none: "+refusal(name+".none"))
	assert.ErrorIs(t, err, os.ErrNotExist)
	directory := t.TempDir()
	_, err = ReadPlan(directory)
	assert.EqualError(t, err, directory+": "+refusal(directory))
}

func FuzzParsePlan(f *testing.F) {
	f.Add([]byte(handheldJSON))
	addCorpus(f)
	for _, seed := range []string{
		``, `null`, `{}`, `[]`, `{"name":"a","name":"b"}`, `{"name":"a","regions":[{"name":"b","size":"1KiB"}]}`,
		`{"name":"a","regions":[{"name":"b","size":18446744073709551615}],"size":-1}`,
		`{"x":{"y":[1,{"z":null}]},"frame":{"buffers":1e9}}`,
		`{"name":"a","regions":[{"name":"b","size":1,"note":"\ud800"}],"limits":{"owned":1}} x`,
		`{"name":"a\\b","x":[{},[1,-0.5e+3,],tru]`, "\xef\xbb\xbf{}", "{// x\n}", `{"a":4MiB}`,
		`{"name":"a","size":"1MiB","regions":[{"name":"b","size":"rest"},{"name":"c","size":1,"slots":3}],"pages":{"guards":"wished"}}`,
		`{"name":"a","base":"0x7fffffff0000","regions":[{"name":"b","size":65536}],"pages":{"base":"required","lock":"off"}}`,
		`{"name":"a","size":65536,"regions":[{"name":"b","size":"rest"},{"name":"c","size":"rest","slots":4097}],"base":1}`,
		`{"a" "b"}`, "{\"a\tb\":\"\xff\"}", `{"x":[[]]}]`} {
		f.Add([]byte(seed))
	}
	for _, seed := range opensSeeds {
		f.Add([]byte(seed.data))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		plan, err := ParsePlan(data)
		assert.True(t, json.Valid(data) || err != nil)
		if err != nil {
			assert.NotEmpty(t, err.Error())
			assert.True(t, utf8.ValidString(err.Error()))
			assert.Zero(t, plan)
			return
		}
		requireSound(t, plan)
		text, err := json.Marshal(plan)
		require.NoError(t, err)
		again, err := ParsePlan(text)
		require.NoError(t, err)
		assert.Equal(t, plan, again)
		requireOpens(t, plan)
	})
}

// planCorpus has the total of each file of testdata/plans. Programs in the field have plans like
// these: a file stays in the corpus unchanged, and keeps its meaning.
var planCorpus = map[string]string{
	"cortex-a35.json":     "336MiB",
	"cortex-a55.json":     "800MiB",
	"cortex-a7.json":      "136MiB",
	"cortex-a72-64k.json": "1GiB",
	"cortex-a76-16k.json": "1344MiB",
	"every-key.json":      "2GiB",
	"frogpond-wide.json":  "64MiB",
	"frogpond.json":       "4544KiB",
	"handheld.json":       "46MiB",
	"least.json":          "64KiB",
	"scratch.json":        "20MiB",
	"server.json":         "96MiB",
}

func TestPlanCorpusLoads(t *testing.T) {
	files, err := filepath.Glob("testdata/plans/*.json")
	require.NoError(t, err)
	var names []string
	for _, file := range files {
		name := filepath.Base(file)
		names = append(names, name)
		plan, err := ReadPlan(file)
		if !assert.NoError(t, err) {
			continue
		}
		requireSound(t, plan)
		assert.Equal(t, planCorpus[name], sizeInPlan(plan.resolved().total()), name)
		text, err := json.Marshal(plan)
		require.NoError(t, err)
		again, err := ParsePlan(text)
		require.NoError(t, err)
		assert.Equal(t, plan, again, name)
	}
	for name := range planCorpus {
		assert.Contains(t, names, name, "it may not go")
	}
}

func TestPlanCorpusHasEveryKey(t *testing.T) {
	plan, err := ReadPlan("testdata/plans/every-key.json")
	require.NoError(t, err)
	var requireGiven func(key string, value reflect.Value)
	requireGiven = func(key string, value reflect.Value) {
		require.False(t, value.IsZero(), "testdata/plans/every-key.json has no %s", key)
		if value.Kind() == reflect.Slice {
			value = value.Index(0)
		}
		for i := 0; value.Kind() == reflect.Struct && i < value.NumField(); i++ {
			// a file can't set OnError
			if field := value.Type().Field(i); field.Type.Kind() != reflect.Func {
				requireGiven(key+"."+field.Name, value.Field(i))
			}
		}
	}
	requireGiven("Plan", reflect.ValueOf(plan))
}

// FuzzParsePlan begins with the corpus, too.
func addCorpus(f *testing.F) {
	files, err := filepath.Glob("testdata/plans/*.json")
	require.NoError(f, err)
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(data)
	}
}

const (
	opensMost = 16 * MiB // larger plans are only read
	// each Open uses up addresses of the process, which keeps the tables of each budget
	opensSystem = 200
)

var (
	opensBlock []byte // where plans are opened
	opensTaken int
)

// opensBytes returns about the bytes of an open plan, with a place on the Go heap for each scope,
// owned value and label.
func opensBytes(p Plan) uint64 {
	const scopeBytes, ownedBytes, labelBytes = 512, 128, 128
	p = p.resolved()
	l, err := p.layout()
	if err != nil {
		return 0 // it doesn't open
	}
	each := p.Limits.Scopes*scopeBytes + p.Limits.Owned*ownedBytes + p.Limits.Labels*labelBytes
	return l.size + p.arenaCount()*uint64(each)
}

// requireOpens checks that an accepted plan opens and holds its sizes, or is refused with a reason.
func requireOpens(t *testing.T, plan Plan) {
	t.Helper()
	if opensBytes(plan) > opensMost {
		return
	}
	if plan.Pages.Prefault != Required {
		plan.Pages.Prefault = Off
	}
	if opensBlock == nil {
		opensBlock = make([]byte, opensMost+planEdge)
	}
	opensOrSays(t, plan, func(p Plan) (*Budget, error) { return OpenIn(opensBlock, p) })
	if opensTaken < opensSystem {
		opensTaken++
		opensOrSays(t, plan, Open)
	}
}

func opensOrSays(t *testing.T, plan Plan, open func(Plan) (*Budget, error)) (opened bool) {
	t.Helper()
	b, err := open(plan)
	if err != nil {
		require.Nil(t, b)
		require.True(t, utf8.ValidString(err.Error()))
		require.True(t, strings.HasPrefix(err.Error(), fmt.Sprintf("budget %q: ", plan.Name)), err.Error())
		require.NotContains(t, err.Error(), "BUG")
		return false
	}
	_, err = b.Walk()
	require.NoError(t, err)
	require.Equal(t, plan.resolved().Regions, b.Plan().Regions)
	for i, open := range b.regions {
		if i > 0 && i < len(b.regions)-1 {
			continue
		}
		r := Region{region: open} // a slot as from Acquire, without an owner
		size := int(r.Report().Size)
		require.EqualValues(t, plan.resolved().Regions[r.level].Size, size)
		_, err = Load(context.Background(), r, func(s scope.Scope) (*byte, error) {
			bytes := s.Bytes(size)
			bytes[0], bytes[size-1] = 1, 1
			require.Nil(t, s.TryAllocUnzeroed(1, 1), "not a byte more")
			return &bytes[0], nil
		})
		require.ErrorIs(t, err, ErrFull)
	}
	_, err = b.Walk()
	require.NoError(t, err)
	require.NoError(t, b.NextFrame())
	require.NoError(t, b.Close())
	return true
}

// TestPlansOpenOrSayWhyNot has plans that are barely accepted or barely refused; the fuzzer begins
// with them too.
func TestPlansOpenOrSayWhyNot(t *testing.T) {
	for _, c := range opensSeeds {
		plan, err := ParsePlan([]byte(c.data))
		require.NoError(t, err, c.data)
		require.LessOrEqual(t, opensBytes(plan), uint64(opensMost), "else it is only read: %s", c.data)
		requireOpens(t, plan)
		assert.Equal(t, c.opens, opensOrSays(t, plan, Open), c.data)
	}
}

var opensSeeds = []struct {
	data  string
	opens bool
}{
	{`{"name":"a","regions":[{"name":"b","size":1}]}`, true},
	{`{"name":"a","scratch":{"workers":1,"each":1,"size":1}}`, true},
	{`{"name":"a","frame":{"buffers":2,"size":1}}`, true},
	{`{"name":"a","regions":[{"name":"b","size":1,"slots":7},{"name":"c","size":65537}],` +
		`"limits":{"scopes":1,"pools":1,"owned":1,"labels":1}}`, true},
	{`{"name":"a","size":"1MiB","regions":[{"name":"b","size":"rest"}],"frame":{"buffers":8,"size":1},` +
		`"scratch":{"workers":1,"size":1}}`, true},
	{`{"name":"a","regions":[{"name":"b","size":65536,"slots":30}],"limits":{"scopes":200},"pages":{"guards":"wished"}}`,
		true},
	{`{"name":"a","regions":[{"name":"b","size":65536}],"limits":{"scopes":9000,"pools":65535,"owned":9000}}`, true},
	{`{"name":"a","regions":[{"name":"b","size":65536}],"base":65536}`, true},
	{`{"name":"a","regions":[{"name":"b","size":65536}],"go_heap":"64TiB"}`, false},
}

// TestPlanFaultIsToldOnce: a faulty count counts as 0, and causes no other fault.
func TestPlanFaultIsToldOnce(t *testing.T) {
	_, err := ParsePlan([]byte(`{"name": "small", "regions": [{"name": "level", "size": "64KiB"}],
		"scratch": {"workers": -1}}`))
	assert.EqualError(t, err, "line 2: scratch.workers: -1 is not a count (a whole number from 0)")
}
