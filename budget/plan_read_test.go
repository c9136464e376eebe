package budget

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
  "pads": {"workers": 2},
  "limits": [1, 2],
  "go heap": 5,
  "go_heap": 4096
}
`), 0o600))
	_, err := ReadPlan(name)
	require.Error(t, err)
	assert.Equal(t, strings.ReplaceAll(`FILE:7: regions[2].size: "-4MiB" is not a size (whole bytes, or as "4MiB" with KiB, MiB or GiB)
FILE:7: regions[2].Note: no such key (there are name, size, note)
FILE:7: regions[2].note: null is not a string
FILE:9: frame.buffers: "1.5" is not a count (a whole number from 0)
FILE:11: frame: given twice
FILE:13: limits: a list is not an object
FILE:14: "go heap": no such key (there are name, size, regions, frame, pads, limits, go_heap)
FILE:12: pads.size: 0 bytes; give a size
FILE:15: go_heap: 4KiB; the Go runtime's share is 0 or 4MiB to 65536GiB`, "FILE", name), err.Error())
}

func TestPlanReadRefuses(t *testing.T) {
	const level = `"regions":[{"name":"level","size":65536}]`
	for _, c := range []struct{ data, fault string }{
		{``, "line 1: ends too early"},
		{"\n\n ", "line 3: ends too early"},
		{`null`, "line 1: null is not an object"},
		{`[]`, "line 1: a list is not an object"},
		{`{`, "line 1: ends too early"},
		{`{"name":"a",` + level, "line 1: regions[0].size: ends too early"},
		{`{"name":"a",` + level + `,}`, "line 1: regions[0].size: invalid character '}'"},
		{`{"name":"a","regions":[{"name":"level","size":1},]}`, "invalid character ']'"},
		{"{\"name\":\"a\",\n\n\"size\" 4}", "line 3: size: invalid character '4'"},
		{"{\"name\":\n\n\nx}", "line 4: name: invalid character 'x'"},
		{"{\"name\":\"a\",\n\n\n\"x\ty\":1}", "line 4: name: invalid character '\\t'"},
		{`{"name":"a",` + level + `} {}`, "line 1: there is more after the plan"},
		{`{"name":"a",` + level + `} x`, "line 1: there is more after the plan"},
		{`{"name":"a",` + level + `}]`, "line 1: there is more after the plan"},
		{`{"name":"a",` + level + `,"name":"b"}`, "line 1: name: given twice"},
		{`{"name":"a","regions":[{"name":"b","size":1,"size":2}]}`, "line 1: regions[0].size: given twice"},
		{`{"name":"a",` + level + `,"Size":1}`, "line 1: Size: no such key"},
		{`{"name":"a",` + level + `,"a\nb":{"size":1}}`, `line 1: "a\nb": no such key`},
		{`{"name":7,` + level + `}`, `line 1: name: "7" is not a string`},
		{`{"name":"a",` + level + `,"size":true}`, "line 1: size: true is not a size"},
		{`{"name":"a",` + level + `,"size":1e6}`, `line 1: size: "1e6" is not a size`},
		{`{"name":"a",` + level + `,"size":0.5}`, `line 1: size: "0.5" is not a size`},
		{`{"name":"a",` + level + `,"size":-1}`, `line 1: size: "-1" is not a size`},
		{`{"name":"a",` + level + `,"size":18446744073709551616}`, `line 1: size: "18446744073709551616" overflows`},
		{`{"name":"a",` + level + `,"size":"1KiB"}`, "line 1: size: the parts need 64KiB"},
		{`{"name":"a",` + level + `,"limits":{"scopes":"9"}}`, `line 1: limits.scopes: "9" is not a number`},
		{`{"name":"a",` + level + `,"limits":{"scopes":4294967297}}`, `line 1: limits.scopes: "4294967297" is not a count`},
		{`{"name":"a","regions":{}}`, "line 1: regions: an object is not a list"},
		{`{"name":"a","regions":[7]}`, `line 1: regions[0]: "7" is not an object`},
		{"{\"name\":\"a\"\n}", "line 1: regions: 0 of them; a plan has 1 to 64"},
		{`{"name":"a","regions":[{"name":"b","size":1,"note":"` + "\xff" + `"}]}`, "line 1: byte 0xff is not UTF-8"},
	} {
		plan, err := ParsePlan([]byte(c.data))
		if assert.Error(t, err, c.data) {
			assert.Contains(t, err.Error(), c.fault)
			assert.NotContains(t, err.Error(), "\n", "one fault: %s", c.data)
		}
		assert.Zero(t, plan)
	}
}

func TestPlanReadIsBounded(t *testing.T) {
	deep := strings.Repeat("[", 1_000_000)
	_, err := ParsePlan([]byte(`{"name":` + deep))
	assert.Error(t, err)

	many := strings.Repeat(`{"name":"UP"},`, 100_000)
	_, err = ParsePlan([]byte(`{"name":"a","regions":[` + many + `{}]}`))
	require.Error(t, err)
	assert.Contains(t, err.Error(), "line 1: regions: 100001 of them; a plan has 1 to 64")
	assert.Less(t, strings.Count(err.Error(), "\n"), 2*planFaultsMax)
	assert.Regexp(t, `\nand \d+ more$`, err.Error())

	name := filepath.Join(t.TempDir(), "large.json")
	require.NoError(t, os.WriteFile(name, make([]byte, planFileMax+1), 0o600))
	_, err = ReadPlan(name)
	assert.EqualError(t, err, "plan: "+name+" is larger than 1MiB")
	_, err = ReadPlan(t.TempDir())
	assert.ErrorContains(t, err, "plan: ")
	_, err = ReadPlan(name + ".none")
	assert.ErrorIs(t, err, os.ErrNotExist)
}

func FuzzParsePlan(f *testing.F) {
	f.Add([]byte(handheldJSON))
	for _, seed := range []string{
		``, `null`, `{}`, `[]`, `{"name":"a","name":"b"}`, `{"name":"a","regions":[{"name":"b","size":"1KiB"}]}`,
		`{"name":"a","regions":[{"name":"b","size":18446744073709551615}],"size":-1}`, `{"x":{"y":[1,{"z":null}]},"frame":{"buffers":1e9}}`,
		`{"name":"a","regions":[{"name":"b","size":1,"note":"\ud800"}],"limits":{"held":1}} x`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		plan, err := ParsePlan(data)
		if err != nil {
			assert.NotEmpty(t, err.Error())
			assert.Zero(t, plan)
			return
		}
		require.NoError(t, plan.Check())
		assert.True(t, json.Valid(data), "control: the library's own reader takes it")
		text, err := json.Marshal(plan)
		require.NoError(t, err)
		again, err := ParsePlan(text)
		require.NoError(t, err)
		assert.Equal(t, plan, again)
	})
}
