package budget

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// planCorpus is what the parts of each file of testdata/plans come to. Plans like these are in
// programs that others have: a file that is in once stays in, as it is, and keeps its meaning.
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
		assert.Equal(t, planCorpus[name], sizeText(plan.resolved().total()), name)
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

// A key that plans have is in the corpus.
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
			if field := value.Type().Field(i); field.Type.Kind() != reflect.Func { // no file has one
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
