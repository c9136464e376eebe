//go:build !race && !asan && !checked && !upfront_cgo

package tests

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestLuaLivesInAnArena: in a heap and in a buddy; 8 MiB to the brim, Lua's own error, on again, and all free at the end.
func TestLuaLivesInAnArena(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a C compiler")
	}
	tools(t, "cc", "pkg-config")
	if output(t, ".", nil, "sh", "-c", "pkg-config --exists lua5.4 || echo absent") != "" {
		absent(t, "Lua 5.4 is not installed (package liblua5.4-dev)")
	}
	lua := strings.Fields(output(t, ".", nil, "pkg-config", "--cflags", "--libs", "lua5.4"))
	sources, err := filepath.Glob("../arena_c/*.c")
	require.NoError(t, err)
	for name, flags := range map[string][]string{
		"release":    {"-O2"},
		"sanitizers": {"-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"},
		"checked":    {"-O1", "-DUPFRONT_CHECKED"},

		"buddy, release":    {"-O2", "-DIN_BUDDY"},
		"buddy, sanitizers": {"-O1", "-DIN_BUDDY", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"},
		"buddy, checked":    {"-O1", "-DIN_BUDDY", "-DUPFRONT_CHECKED"},
	} {
		t.Run(name, func(t *testing.T) {
			program := filepath.Join(t.TempDir(), "client")
			args := slices.Concat(flags, []string{"-std=c11", "-g", "-Wall", "-Wextra", "-Werror", "-I../arena_c", "-o", program},
				sources, []string{"testdata/lua.c"}, lua)
			output(t, ".", nil, "cc", args...)
			said := output(t, ".", nil, program)
			assert.Contains(t, said, "not enough memory", "Lua's own words")
			assert.True(t, strings.HasSuffix(said, "ok\n"), said)
		})
	}
}
