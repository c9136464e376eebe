package game

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
)

// Lines that many goroutines write stay whole.
func TestLogLinesStayApart(t *testing.T) {
	name := filepath.Join(t.TempDir(), "log") // removed after the server has closed it
	s := openServer(t, doom.Builtin)
	s.log = name
	level, err := s.Load(t.Context(), s.Maps[0], 1)
	require.NoError(t, err)
	var writers sync.WaitGroup
	for i := range 4 {
		writers.Go(func() {
			for range 100 {
				level.Note(strings.Repeat("x", 10*i), uint64(i))
			}
		})
	}
	writers.Wait()
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")[1:]
	assert.Len(t, lines, 400)
	for _, line := range lines {
		assert.Regexp(t, `^MAP01 x* \d$`, line)
	}
}
