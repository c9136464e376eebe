package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/tests/clients/paired"
	"github.com/upfront-mem/upfront/tests/step"
)

// events are the output of go test -json for a client.
const events = `{"Action":"run","Package":"p","Test":"TestFigures"}
{"Action":"output","Package":"p","Test":"TestFigures","Output":"    a_test.go:9: figure: {\"name\":\"head\",\"ratio\":0.5,\"garbage_ratio\":0.1,\"garbage\":20,\"ns\":1500}\n"}
{"Action":"output","Package":"p","Test":"TestFigures","Output":"    a_test.go:9: figure: {\"name\":\"other\",\"ratio\":2,\"garbage_ratio\":1,\"garbage\":0,\"ns\":7}\n"}
{"Action":"output","Package":"p","Test":"TestFigures","Output":"    a_test.go:9: live: 0\n"}
{"Action":"pass","Package":"p","Test":"TestFigures"}
{"Action":"output","Package":"p","Test":"TestLater","Output":"    a_test.go:10: make gate runs it\n"}
{"Action":"skip","Package":"p","Test":"TestLater"}
{"Action":"output","Package":"p","Test":"TestSkipped","Output":"    a_test.go:11: not proven here: clang is missing\n"}
{"Action":"skip","Package":"p","Test":"TestSkipped"}
{"Action":"output","Package":"p","Test":"TestWrong","Output":"    a_test.go:12: it is wrong\n"}
{"Action":"fail","Package":"p","Test":"TestWrong"}
{"Action":"pass","Package":"p"}
`

func TestRead(t *testing.T) {
	var r result
	var shown strings.Builder
	require.NoError(t, r.read(strings.NewReader(events), &shown))
	assert.Equal(t, 2, r.Tests)
	assert.Equal(t, 2, r.Skipped)
	assert.Equal(t, 0.5, r.Ratio)
	assert.Equal(t, 0.1, r.GarbageRatio)
	assert.Len(t, r.Figures, 2)
	assert.Equal(t, "    a_test.go:11: not proven here: clang is missing\n    a_test.go:12: it is wrong\n",
		shown.String())
	assert.NoError(t, r.lacks())
}

// TestLacks: a client that logs nothing fails.
func TestLacks(t *testing.T) {
	for missing, says := range map[string]string{"figure: ": "no test logged a figure",
		"live: ": "no test logged the bytes that are live"} {
		var r result
		require.NoError(t, r.read(strings.NewReader(strings.ReplaceAll(events, missing, "")), &strings.Builder{}))
		assert.ErrorContains(t, r.lacks(), says)
	}
	var r result
	assert.Error(t, r.read(strings.NewReader(strings.ReplaceAll(events, "live: 0", "live: some")), &strings.Builder{}))
}

func TestPage(t *testing.T) {
	figures := []paired.Figure{{Name: "head", Ratio: 0.5, GarbageRatio: 0.0123, Garbage: 20, Nanoseconds: 1500}}
	page, err := between("# A page\n<!-- figures -->\nold\n<!-- /figures -->\nrest\n", table(figures))
	require.NoError(t, err)
	assert.Contains(t, page, "| head | 1.5 | 0.50 | 20 | 0.012 |\n<!-- /figures -->\nrest\n")
	assert.NotContains(t, page, "old")
	again, err := between(page, table(figures))
	require.NoError(t, err)
	assert.Equal(t, page, again)
	_, err = between("# A page\n", "")
	assert.ErrorContains(t, err, "no place between")
}

func TestArguments(t *testing.T) {
	t.Setenv(step.Variable, "check")
	assert.Equal(t, []string{"test", "-json", "-count=1", "-tags=libsqlite3", "-timeout=2h", "-vet=off", "./..."},
		arguments("arena/with/sqlite", options{}))
	t.Setenv(step.Variable, "soak")
	assert.NotContains(t, arguments("arena/with/sqlite", options{}), "-tags=libsqlite3")
	assert.Contains(t, arguments("arena/with/sqlite", options{readme: true}), "-run=^TestFigures$")
}
