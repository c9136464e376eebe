package jsonfile

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// walk reads every value and checks its offset.
func walk(t *testing.T, f *File, v *Value) (count int) {
	require.True(t, strings.HasPrefix(string(f.data[v.At:]), v.Text), "%s at %d", v.Path(), v.At)
	require.True(t, json.Valid([]byte(v.Text)), v.Text)
	switch v.Text[0] {
	case '{':
		for m := range f.Members(v, nil) {
			count += walk(t, f, m)
		}
	case '[':
		for m := range f.Items(v) {
			count += walk(t, f, m)
		}
	}
	return count + 1
}

func TestPlaces(t *testing.T) {
	f, root := Parse("pond.json:", []byte(`
{ "nodes" :
  {"a": [1, {"a.b" : [ ]}],
   "b": {"c": "d\n"},
   "a": 2}}`))
	require.NotNil(t, root)
	assert.Equal(t, 8, walk(t, f, root), "of two equal names one is given")
	assert.Equal(t, "[ ]", f.Given(`nodes.a[1]."a.b"`).Text)
	assert.Equal(t, "[ ]", f.Given(`nodes.a[1]."a.b"[7]`).Text, "the nearest around it")
	assert.Equal(t, root, f.Given("what"))
	text, err := f.Given("nodes.b.c").Str()
	assert.NoError(t, err)
	assert.Equal(t, "d\n", text)
	f.Refuse(f.Given("nodes.b.c"), errors.New("is not a string"))
	for range f.Members(f.Given("nodes.b.c"), nil) {
		t.Error("a string has no members")
	}
	for range f.Items(root) {
		t.Error("an object has no items")
	}
	assert.EqualError(t, f.Err(), `pond.json:2: an object is not a list
pond.json:4: nodes.b.c: "d\n" is not a string
pond.json:4: nodes.b.c: "d\n" is not an object
pond.json:5: nodes.a: given twice`)
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{``, `null`, ` {"a" : [ 1 , {"b":null , "b":2}] } `, `[[],{},"\u2028"]`,
		"\xef\xbb\xbf{}", "{\"\xff\":1}", `{"a" "b"}`, `{"a":4MiB}`, `{"x":[[]]}]`, `{"":{"a.b[":1e9}}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file, root := Parse("line ", data)
		assert.Equal(t, json.Valid(data) && utf8.Valid(data), root != nil)
		if root != nil {
			walk(t, file, root)
		}
		if err := file.Err(); err != nil {
			assert.True(t, utf8.ValidString(err.Error()))
		} else {
			assert.NotNil(t, root)
		}
	})
}

func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"":                         "",
		"größte Karte\ufffd":       "größte Karte\ufffd",
		"a\x1b[31m\u202e\xff.json": "a\ufffd[31m\ufffd\ufffd.json",
		"made\n\tat\x00":           "made\ufffd\ufffdat\ufffd",
	} {
		assert.Equal(t, want, Printable(text), "%q", text)
		assert.Equal(t, want, Printable(want), "%q", want)
	}
	assert.Equal(t, "made\n\tat\ufffd", Printable("made\n\tat\x00", '\n', '\t'))
}
