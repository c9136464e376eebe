package mallocs_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget/internal/mallocs"
)

func TestCodeFiles(t *testing.T) {
	assert.Equal(t, []string{"/usr/bin/pond", "/usr/lib/a\nb.so", "/usr/lib/frog pond.so (deleted)"},
		mallocs.CodeFiles(`5581c0000000-5581c0010000 r--p 00000000 08:01 11                         /usr/bin/pond
5581c0010000-5581c0020000 r-xp 00010000 08:01 11                         /usr/bin/pond
5581c0020000-5581c0030000 rw-p 00020000 08:01 11                         /usr/bin/pond
5581c1000000-5581c1020000 rw-p 00000000 00:00 0                          [heap]
7f3a1c000000-7f3a1c028000 r--p 00000000 08:01 1835                       /usr/lib/data.so
7f3a1c028000-7f3a1c17d000 r-xp 00028000 08:01 1836                       /usr/lib/frog pond.so (deleted)
7f3a1c17d000-7f3a1c18d000 r-xp 00028000 08:01 1837                       /usr/lib/a\012b.so
7f3a1c18d000-7f3a1c19d000 r-xp 00030000 08:01 1837                       /usr/lib/a\012b.so
7f3a1c200000-7f3a1c210000 rwxp 00000000 00:00 0 
7ffd5a1d8000-7ffd5a1da000 r-xp 00000000 00:00 0                          [vdso]
7f3a1c300000-7f3a1c310000 r-xp 00000000 00:01 77                        
short line
`))
	assert.Empty(t, mallocs.CodeFiles(""))
}

// TestFind: this program has no other allocator.
func TestFind(t *testing.T) {
	assert.Empty(t, mallocs.Find())
}

// TestSearchOtherFiles: a pipe, a device, a folder or no file at a library's path is skipped.
func TestSearchOtherFiles(t *testing.T) {
	dir := t.TempDir()
	pipe, library, secret := filepath.Join(dir, "pipe"), filepath.Join(dir, "a.so"), filepath.Join(dir, "secret")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	text := forms[0].elf("a_mallctl", "a_mallctl")
	require.NoError(t, os.WriteFile(library, text, 0o600))
	require.NoError(t, os.WriteFile(secret, text, 0))
	for _, name := range []string{pipe, dir, "/dev/zero", "/proc/self/mem", filepath.Join(dir, "none")} {
		assert.Empty(t, mallocs.SearchFile(name), name)
	}
	assert.Equal(t, "jemalloc:a_mallctl", found(mallocs.SearchFile(library)))
	if os.Getuid() != 0 { // root reads each file
		assert.Empty(t, mallocs.SearchFile(secret))
	}
}

func BenchmarkFind(b *testing.B) {
	for b.Loop() {
		mallocs.Find()
	}
}
