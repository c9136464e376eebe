package view_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"runtime/trace"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
)

// slowest keeps a trace of each of the ten slowest ticks, in files slow0.trace to slow9.trace.
type slowest struct {
	folder   string
	recorder *trace.FlightRecorder // started with a MinAge longer than a tick
	took     [10]time.Duration
}

// play plays a tick. A trace is written after the tick, so it makes the next one late.
func (s *slowest) play(tick func()) error {
	start := time.Now()
	tick()
	took := time.Since(start)
	least := slices.Min(s.took[:])
	if took <= least {
		return nil
	}
	i := slices.Index(s.took[:], least)
	s.took[i] = took
	file, err := os.Create(filepath.Join(s.folder, fmt.Sprintf("slow%d.trace", i)))
	if err == nil {
		_, err = s.recorder.WriteTo(file)
		err = errors.Join(err, file.Close())
	}
	return err
}

// The traces of the slowest ticks have the budget's loads and rewinds.
func Example_slowest() {
	folder, err := os.MkdirTemp("", "slowest")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	s := slowest{folder: folder, recorder: trace.NewFlightRecorder(trace.FlightRecorderConfig{MinAge: time.Second})}
	if err := s.recorder.Start(); err != nil {
		log.Fatal(err)
	}
	defer s.recorder.Stop()

	b, err := budget.Open(budget.Plan{Name: "pond", Regions: []budget.RegionPlan{{Name: "level", Size: budget.KiB}}})
	if err != nil {
		log.Fatal(err)
	}
	defer b.Close()
	for range 3 {
		err := s.play(func() {
			if err := b.Region("level").Rewind(context.Background()); err != nil {
				log.Fatal(err)
			}
		})
		if err != nil {
			log.Fatal(err)
		}
	}
	text, err := os.ReadFile(filepath.Join(folder, "slow2.trace"))
	fmt.Println(bytes.Contains(text, []byte("upfront.Rewind")), err)
	// Output: true <nil>
}

// TestSlowestPage: the page shows the example's type.
func TestSlowestPage(t *testing.T) {
	code, err := os.ReadFile("slowest_example_test.go")
	require.NoError(t, err)
	_, shown, _ := strings.Cut(string(code), "\n// slowest keeps")
	shown, _, found := strings.Cut(shown, "\n// The traces")
	require.True(t, found)
	page, err := os.ReadFile("README.md")
	require.NoError(t, err)
	assert.Contains(t, string(page), "```go\n// slowest keeps"+shown+"```\n")
}
