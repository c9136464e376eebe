//go:build linux && !race && !asan && !checked && !upfront_cgo

package tests

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/tests/step"
)

// The lines that the programs print when they seal the budget, and just before they close it.
const (
	sealedMark = `"budget sealed, bytes `
	closedMark = `"log closed by process `
)

// budgetAt has the budget's addresses, as the programs print them.
type budgetAt struct {
	Base   string `json:"budget_base"`
	Bytes  uint64 `json:"budget_bytes"`
	Levels []struct {
		Ticks  *int `json:"ticks"`
		Faults *int `json:"budget_faults"`
	}
}

func readBudgetAt(t *testing.T, stdout []byte) (at budgetAt, s span) {
	t.Helper()
	require.NoError(t, json.Unmarshal(stdout, &at))
	base, err := strconv.ParseUint(at.Base, 0, 64)
	require.NoError(t, err)
	require.NotZero(t, base)
	require.NotZero(t, at.Bytes)
	return at, span{base, at.Bytes}
}

// TestSealedBudgetAsksNothing plays 10,000 ticks and 20 changes of level, those of systems
// included. No system call names an address of the budget, except calls that fill a buffer or query
// page residency. The control: the calls of Open and Close are found by the same search.
func TestSealedBudgetAsksNothing(t *testing.T) {
	step.Needs(t, step.Check)
	const maps, ticks = 20, 500
	var names []string
	for i := range maps {
		names = append(names, fmt.Sprintf("MAP%02d", i%12+1)) // Freedoom has these maps, too
	}
	args := []string{"-json", "-workers", "2", "-ticks", strconv.Itoa(ticks), "-maps", strings.Join(names, ","),
		"-log", filepath.Join(t.TempDir(), "log")}
	if !freedoom(t) { // without a file, play reads nothing
		args = append(args, "-wad", writeWAD(t, names[:12]))
	}
	stdout, lines := strace(t, buildLike(t, "frogpond"), args...)
	at, s := readBudgetAt(t, stdout)
	require.Len(t, at.Levels, maps)
	for _, l := range at.Levels {
		require.Equal(t, ticks, *l.Ticks)
		assert.Zero(t, *l.Faults)
	}
	before, sealed, after := between(t, lines, sealedMark, closedMark)
	assert.Equal(t, maps+maps/10+1, strings.Count(strings.Join(append(sealed, lines[len(before)+1+len(sealed)]), "\n"),
		closedMark),
		"each level's log; and the systems', which were built anew")
	_, found := s.findings(sealed)
	assert.Empty(t, found)
	opened, _ := s.findings(before)
	assert.Contains(t, opened, "mprotect")
	closed, _ := s.findings(after)
	assert.Contains(t, closed, "mprotect")
	assert.Contains(t, closed, "mmap", "over what was there")
	asked := slices.ContainsFunc(sealed, func(line string) bool { return strings.Contains(line, "mincore("+at.Base) })
	assert.True(t, asked, "frogpond asked for missing pages")
	read := slices.ContainsFunc(sealed, func(line string) bool {
		name, buffer, _ := strings.Cut(line, "(0x")
		return strings.HasSuffix(name, "pread64") && namesBudget(buffer, s)
	})
	assert.True(t, read, "maps were read into the budget")
}

// freedoom reports whether Freedoom's second file is installed. Where all tools are required, the
// test fails without it.
func freedoom(t *testing.T) bool {
	t.Helper()
	_, err := os.Stat("/usr/share/games/doom/freedoom2.wad")
	if err == nil {
		return true
	}
	if os.Getenv("REQUIRE_ALL") != "" {
		step.Lacks(t, "Freedoom", "freedoom")
	}
	t.Log(step.Unproven + "with Freedoom's maps; Debian's package freedoom brings them")
	return false
}

// writeWAD writes a file of maps. Each is one room of four walls, with as many starts as a map has
// bots.
func writeWAD(t *testing.T, maps []string) (name string) {
	t.Helper()
	type lump struct {
		At, Size uint32
		Name     [8]byte
	}
	var room, table []lump
	file := append([]byte("PWAD"), make([]byte, 8)...)
	add := func(name string, words ...uint16) {
		l := lump{At: uint32(len(file)), Size: uint32(2 * len(words))}
		copy(l.Name[:], name)
		room = append(room, l)
		file, _ = binary.Append(file, binary.LittleEndian, words)
	}
	var things, lines []uint16
	for i := range uint16(4) {
		things = append(things, 128*i+64, 64, 0, i+1, 7)
		lines = append(lines, i, (i+1)%4, 1, 0, 0, i, 0xffff)
	}
	add("the map's name")
	add("THINGS", things...)
	add("LINEDEFS", lines...)
	add("SIDEDEFS", make([]uint16, 4*15)...)
	add("VERTEXES", 0, 0, 0, 512, 512, 512, 512, 0)
	add("SECTORS", 0, 128, 0, 0, 0, 0, 0, 0, 0, 0, 160, 0, 0)
	for _, m := range maps { // all have the same lumps
		room[0].Name = [8]byte{}
		copy(room[0].Name[:], m)
		table = append(table, room...)
	}
	binary.LittleEndian.PutUint32(file[4:], uint32(len(table)))
	binary.LittleEndian.PutUint32(file[8:], uint32(len(file)))
	file, err := binary.Append(file, binary.LittleEndian, table)
	require.NoError(t, err)
	name = filepath.Join(t.TempDir(), "made.wad")
	require.NoError(t, os.WriteFile(name, file, 0o600))
	return name
}

// namesBudget reports whether the second argument is an address of the budget.
func namesBudget(args string, s span) bool {
	list := strings.Split(args, ", ")
	address, err := strconv.ParseUint(list[1], 0, 64)
	return err == nil && s.has(address)
}

// The control: the search finds each call of a program that changes the pages of its budget.
func TestCallsOnTheBudgetAreSeen(t *testing.T) {
	step.Needs(t, step.Check)
	stdout, lines := strace(t, buildLike(t, "testdata/asker"))
	_, s := readBudgetAt(t, stdout)
	_, sealed, _ := between(t, lines, sealedMark, closedMark)
	names, _ := s.findings(sealed)
	assert.Equal(t, []string{"madvise", "mlock", "munlock", "mprotect", "mprotect", "mmap", "msync", "process_madvise",
		"msync"}, names)
}
