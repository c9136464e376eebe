package merge

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/upfront-mem/upfront/budget"
)

const plan = `{
  "name": "pond",
  "regions": [
    {"name": "init", "size": "1MiB"},
    {"name": "level", "size": "4096KiB", "note": "all of \"E1M1\""}
  ],

  "go_heap": "32MiB"
}
`

// changed returns text after replacements. Each must be possible.
func changed(t *testing.T, text string, pairs ...string) string {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if strings.Count(text, pairs[i]) != 1 {
			t.Fatalf("%q is not once in %s", pairs[i], text)
		}
		text = strings.Replace(text, pairs[i], pairs[i+1], 1)
	}
	return text
}

func planTree(t *testing.T, text string) *Tree {
	t.Helper()
	tree, err := Parse("plan.json", []byte(text), Plan)
	must(t, err)
	return tree
}

// TestSpace: a merge changes no other text than that of the merged values.
func TestSpace(t *testing.T) {
	const regions = `    {"name": "level", "size": "4096KiB", "note": "all of \"E1M1\""}`
	for _, c := range []struct{ a, b, both []string }{
		{[]string{`"32MiB"`, `"48MiB"`}, []string{`"4096KiB"`, `"8MiB"`},
			[]string{`"32MiB"`, `"48MiB"`, `"4096KiB"`, `"8MiB"`}},
		{[]string{`"1MiB"`, `"2MiB"`}, []string{regions, regions + ",\n    {\"name\": \"net\", \"size\": \"64KiB\"}"},
			[]string{`"1MiB"`, `"2MiB"`, regions, regions + ",\n    {\"name\": \"net\", \"size\": \"64KiB\"}"}},
		{[]string{`"1MiB"`, `"2MiB"`}, []string{"\n\n  \"go_heap\": \"32MiB\"", "\n  \"frame\": {\"buffers\": 2, " +
			"\"size\": \"64KiB\"}"},
			[]string{`"1MiB"`, `"2MiB"`, "\n\n  \"go_heap\": \"32MiB\"",
				"\n  \"frame\": {\"buffers\": 2, \"size\": \"64KiB\"}"}},
		{[]string{`"1MiB"`, `"2MiB"`}, []string{`, "note": "all of \"E1M1\""`, ""},
			[]string{`"1MiB"`, `"2MiB"`, `, "note": "all of \"E1M1\""`, ""}},
		{[]string{`"4096KiB", `, `"4096KiB", "on": "/", `}, []string{`"4096KiB"`, `"8MiB"`},
			[]string{`"4096KiB", `, `"8MiB", "on": "/", `}},
		{[]string{`"1MiB"`, `"1024KiB"`}, []string{`"32MiB"`, `"1MiB"`}, []string{`"size": "1MiB"`, `"size": "1024KiB"`,
			`"32MiB"`, `"1MiB"`}},
	} {
		a, b, want := changed(t, plan, c.a...), changed(t, plan, c.b...), changed(t, plan, c.both...)
		got, conflicts := Merge(planTree(t, plan), planTree(t, a), planTree(t, b))
		if len(conflicts) != 0 || string(got) != want {
			t.Errorf("%v\n%s\nis not\n%s", conflicts, got, want)
		}
		if list := Diff(planTree(t, want), planTree(t, string(got))); len(list) != 0 {
			t.Error(list)
		}
	}
}

// TestConflicts merges changes in both directions.
func TestConflicts(t *testing.T) {
	const last = `    {"name": "level", "size": "4096KiB", "note": "all of \"E1M1\""}`
	add := func(region string) []string { return []string{last, last + ", " + region} }
	swapped := []string{"\n    {\"name\": \"init\", \"size\": \"1MiB\"},", "", last,
		last + `, {"name": "init", "size": "1MiB"}`}
	for want, c := range map[string]struct{ a, b []string }{
		`go_heap "32MiB":8 "48MiB":8 "64MiB":8`: {[]string{`"32MiB"`,
			`"48MiB"`}, []string{`"32MiB"`, `"64MiB"`}},
		`go_heap "32MiB":8 :0 "64MiB":8`: {[]string{",\n\n  \"go_heap\": \"32MiB\"",
			""}, []string{`"32MiB"`, `"64MiB"`}},
		`c_heap :0 "1MiB":8 {"size":"2MiB"}:8`: {[]string{`"32MiB"`,
			`"32MiB", "c_heap": "1MiB"`}, []string{`"32MiB"`, `"32MiB", "c_heap": {"size":"2MiB"}`}},
		`regions.net :0 {"name":"net"}:5 {"name":"net","x":1}:5`: {add(`{"name":"net"}`),
			add(`{"name":"net","x":1}`)},
		`regions.level.on :0 "/":5 "init":5`: {[]string{`"level", `, `"level", "on": "/", `},
			[]string{`"level", `, `"level", "on": "init", `}},
		`regions order ["init", "level"]:3 ["init", "level", "a"]:3 ["init", "level", "b"]:3`: {add(`{"name":"a"}`),
			add(`{"name":"b"}`)},
		`regions order ["init", "level"]:3 ["level", "init"]:3 ["init", "level", "b"]:3`: {swapped,
			add(`{"name":"b"}`)},
		`regions.init {"name": "init", "size": "1MiB"}:4 :0 {"name": "init", "size": "3MiB"}:4`: {
			[]string{"\n    {\"name\": \"init\", \"size\": \"1MiB\"},", ""}, []string{`"1MiB"`, `"3MiB"`}},
	} {
		for _, turned := range []bool{false, true} {
			a, b := planTree(t, changed(t, plan, c.a...)), planTree(t, changed(t, plan, c.b...))
			if turned {
				a, b = b, a
			}
			data, list := Merge(planTree(t, plan), a, b)
			if len(list) != 1 {
				t.Errorf("%s: %v", want, list)
				continue
			}
			of := list[0]
			if turned {
				of.A, of.B, of.LineA, of.LineB = of.B, of.A, of.LineB, of.LineA
			}
			order := map[bool]string{true: " order"}[of.Order]
			got := fmt.Sprintf("%s%s %s:%d %s:%d %s:%d", of.Path, order, of.Base, of.LineBase, of.A, of.LineA,
				of.B, of.LineB)
			if got != want {
				t.Errorf("%s\nis not\n%s", got, want)
			}
			if list := Diff(a, planTree(t, string(data))); !of.Order && len(list) != 0 {
				t.Error("the result hasn't the values of A:", list)
			}
		}
	}
}

// TestWholes: a plan's frame is there or not as a whole, and its C heap has two forms.
func TestWholes(t *testing.T) {
	frame := changed(t, plan, `"32MiB"`, `"32MiB", "frame": {"buffers": 2, "size": "1MiB"}, "c_heap": "8MiB"`)
	for _, c := range []struct {
		a, b []string
		want string
	}{
		{[]string{`, "frame": {"buffers": 2, "size": "1MiB"}`, ""}, []string{`2, "size": "1MiB"`, `2, "size": "2MiB"`},
			"frame"},
		{[]string{`"8MiB"`, `{"size": "8192KiB"}`}, []string{`"8MiB"`, `"16MiB"`}, ""},
		{[]string{`"8MiB"`, `{"size": "8192KiB", "fronts": 2}`}, []string{`"8MiB"`, `"16MiB"`}, ""},
		{[]string{`, "c_heap": "8MiB"`, ``}, []string{`"8MiB"`, `"16MiB"`}, "c_heap"},
	} {
		for _, turned := range []bool{false, true} {
			a, b := planTree(t, changed(t, frame, c.a...)), planTree(t, changed(t, frame, c.b...))
			if turned {
				a, b = b, a
			}
			data, list := Merge(planTree(t, frame), a, b)
			if len(list) == 1 && list[0].Path != c.want || (len(list) == 1) != (c.want != "") {
				t.Errorf("%s: %v\n%s", c.want, list, data)
			}
			if c.want == "" && !strings.Contains(string(data), "16MiB") {
				t.Errorf("%s", data)
			}
		}
	}
}

// TestExpectations are parts in a list, by part and label. Both versions may add some.
func TestExpectations(t *testing.T) {
	with := func(list string) *Tree {
		return planTree(t, changed(t, plan, `"32MiB"`, `"32MiB", "expected": [`+list+`]`))
	}
	data, list := Merge(with(`{"part": "level", "play": "1MiB"}`),
		with(`{"part": "level", "play": "2MiB"}, {"part": "level", "label": "frogs", "play": 1}`),
		with(`{"part": "level", "play": "1MiB", "tolerance": "9%"}, {"part": "init", "boot": 7}`))
	want := `[{"part": "level", "play": "2MiB", "tolerance": "9%"}, {"part": "level", "label": "frogs", "play": 1}, {"part": "init", "boot": 7}]`
	if len(list) != 0 || !strings.Contains(string(data), want) {
		t.Errorf("%v: %s", list, data)
	}
	changes := Diff(with(`{"part": "level", "label": "4MiB", "play": 1}`),
		with(`{"part": "level", "label": "4096KiB", "play": 1}`))
	if len(changes) != 2 || changes[0].Path != `expected."level 4MiB"` {
		t.Error(changes)
	}
}

// TestNamesThatReadAsSizes: "7" and "07" are one size and two names. Plans that differ in a name
// aren't equal, for each key of a plan.
func TestNamesThatReadAsSizes(t *testing.T) {
	text, err := os.ReadFile("../../../testdata/plans/every-key.json")
	must(t, err)
	regions := `"regions": [{"name": "7", "size": "64KiB"}, {"name": "07", "size": "64KiB"},`
	text = []byte(changed(t, string(text), `"regions": [`, regions))
	names := map[string]bool{}
	for _, pair := range [][2]string{{"7", "07"}, {"8", "08"}} { // regions, and names of no part
		for i := 0; ; i++ {
			key, one, found := withString(t, text, i, pair[0])
			_, other, _ := withString(t, text, i, pair[1])
			if !found {
				break
			}
			a, wrong := budget.ParsePlan(one)
			b, alsoWrong := budget.ParsePlan(other)
			if wrong != nil || alsoWrong != nil || reflect.DeepEqual(a, b) {
				continue
			}
			names[key] = true
			if len(Diff(planTree(t, string(one)), planTree(t, string(other)))) == 0 {
				t.Errorf("no difference: the key %s with %q and with %q", key, pair[0], pair[1])
			}
		}
	}
	want := []string{"in", "label", "name", "note", "on", "part"}
	if got := slices.Sorted(maps.Keys(names)); !slices.Equal(got, want) {
		t.Errorf("the keys of names are %v", got)
	}
}

// withString returns JSON with the i-th string replaced, and the string's key. It returns false if
// there are fewer strings.
func withString(t *testing.T, text []byte, i int, by string) (key string, result []byte, found bool) {
	var walk func(of string, value any) any
	walk = func(of string, value any) any {
		switch value := value.(type) {
		case map[string]any:
			for _, name := range slices.Sorted(maps.Keys(value)) {
				value[name] = walk(name, value[name])
			}
		case []any:
			for n := range value {
				value[n] = walk(of, value[n])
			}
		case string:
			if i--; i == -1 {
				key, found = of, true
				return by
			}
		}
		return value
	}
	var root any
	must(t, json.Unmarshal(text, &root))
	result, err := json.Marshal(walk("", root))
	must(t, err)
	return key, result, found
}

// TestRepeatedLinks: a list with a link twice is merged as a whole, since a place in it has two
// names.
func TestRepeatedLinks(t *testing.T) {
	graph := func(list, other string) *Tree {
		return parsed(t, `{"nodes": {"x": {"then": [`+list+`], "else": [`+other+`]}}}`)
	}
	base := graph(`"a", "b", "a"`, ``)
	data, list := Merge(base, graph(`"b", "a"`, ``), graph(`"a", "c", "b", "a"`, ``))
	if len(list) != 1 || list[0].Path != "nodes.x.then" || list[0].Order {
		t.Errorf("%+v: %s", list, data)
	}
	data, list = Merge(base, graph(`"b", "a"`, ``), graph(`"a", "b", "a"`, `"a"`))
	if want := `{"nodes": {"x": {"then": ["b", "a"], "else": ["a"]}}}`; len(list) != 0 || string(data) != want {
		t.Errorf("%+v: %s", list, data)
	}
}

// TestSpaceOfLinks: a merged list has its links as they were written.
func TestSpaceOfLinks(t *testing.T) {
	const list = "{\"nodes\": {\"x\": {\"then\": [\n\t\t\"a\",\n\t\t{ \"b\":\"in\" }\n\t]}}}\n"
	data, conflicts := Merge(parsed(t, list), parsed(t, changed(t, list, `{"nodes": {`, `{"nodes":  {`)),
		parsed(t, `{"nodes": {"x": {"then": ["a", {"b": "in"}, "c"]}}}`))
	want := changed(t, list, `{"nodes": {`, `{"nodes":  {`, `{ "b":"in" }`, "{ \"b\":\"in\" },\n\t\t\"c\"")
	if len(conflicts) != 0 || string(data) != want {
		t.Errorf("%v: %s\nis not %s", conflicts, data, want)
	}
}

func TestNamesOccurOnce(t *testing.T) {
	_, err := Parse("plan.json", []byte(strings.Replace(plan, `"init"`, `"level"`, 1)), Plan)
	if err == nil || err.Error() != `plan.json:5: regions[1]: the name "level" occurs twice` {
		t.Error(err)
	}
	_, err = Parse("door.json", []byte("{\"nodes\": {\"a\": {},\n\"a\": {}}}"), Graph)
	if err == nil || err.Error() != `door.json:2: nodes.a: given twice` {
		t.Error(err)
	}
}

// FuzzMerge merges any three texts, as plans and as graphs: the result is JSON, and where A and B
// are equal it is A.
func FuzzMerge(f *testing.F) {
	f.Add(plan, plan, plan)
	f.Add(`{"nodes": {"a": {"then": ["b", {"c": "in", "d": "in"}]}}}`, `{"nodes": {"a": {"then": "b", "in": {}}}}`,
		`{"nodes": []}`)
	f.Add(`[1]`, `{"regions": {}}`, `{"regions": [{}, 5]}`)
	f.Fuzz(func(t *testing.T, base, a, b string) {
		for _, schema := range []*Schema{Plan, Graph} {
			var trees [3]*Tree
			for i, text := range []string{base, a, b} {
				tree, err := Parse("x", []byte(text), schema)
				if err != nil {
					return
				}
				trees[i] = tree
			}
			data, conflicts := Merge(trees[0], trees[1], trees[2])
			merged, err := Parse("x", data, schema)
			if err != nil {
				t.Fatalf("%v: %s", err, data)
			}
			if list := Diff(trees[1], merged); len(Diff(trees[1], trees[2])) == 0 && len(list)+len(conflicts) != 0 {
				t.Fatalf("%v %v", list, conflicts)
			}
			if again := Diff(trees[1], trees[1]); len(again) != 0 {
				t.Fatal(again)
			}
		}
	})
}
