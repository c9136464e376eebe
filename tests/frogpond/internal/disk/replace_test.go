package disk

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A failure halfway leaves the old file, and no new file.
func TestReplace(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "save")
	writes := func(text string, err error) func(io.Writer) error {
		return func(w io.Writer) error {
			_, failed := io.WriteString(w, text)
			return errors.Join(failed, err)
		}
	}
	check := func(want string) {
		t.Helper()
		data, err := os.ReadFile(name)
		require.NoError(t, err)
		assert.Equal(t, want, string(data))
		files, err := os.ReadDir(dir)
		require.NoError(t, err)
		assert.Len(t, files, 1)
	}
	broken := errors.New("broken")
	require.ErrorIs(t, Replace(name, writes("half", broken)), broken)
	assert.NoFileExists(t, name)
	require.NoError(t, Replace(name, writes("the first", nil)))
	check("the first")
	require.ErrorIs(t, Replace(name, writes("half", broken)), broken)
	check("the first")
	require.NoError(t, Replace(name, writes("next", nil)))
	check("next")
}

// A device stays a device, and a link keeps its target.
func TestReplaceThrough(t *testing.T) {
	dir := t.TempDir()
	device, link, name := filepath.Join(dir, "device"), filepath.Join(dir, "link"), filepath.Join(dir, "save")
	full(t, device)
	nothing := func(io.Writer) error { return nil }
	require.NoError(t, Replace(device, nothing))
	assert.ErrorContains(t, Replace(device, func(w io.Writer) error {
		_, err := io.WriteString(w, "more")
		return err
	}), noSpace)
	require.NoError(t, os.WriteFile(name, []byte("old"), 0o644))
	require.NoError(t, os.Symlink(name, link))
	require.NoError(t, Replace(link, nothing))
	data, err := os.ReadFile(name)
	require.NoError(t, err)
	assert.Empty(t, data)
	for _, l := range []string{device, link} {
		_, err := os.Readlink(l)
		assert.NoError(t, err, l)
	}
}
