// Package trees has the rows of tree-sitter, called by cgo. The program is
// tests/bench/resident/trees, which parses the sources of Go's packages on eight goroutines. There
// are two builds of the program, with and without a c_heap, because the import of arena/with/malloc
// changes the malloc of a whole process.
package trees

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/upfront-mem/upfront/tests/others/row"
)

// Programs returns the program in a c_heap, as published, and with Debian's package
// libjemalloc2.
func Programs() []row.Program {
	program := func(name, tags, bound string, env ...string) row.Program {
		return row.Program{Task: "trees", Name: name, Run: func(ctx context.Context, m *row.Meter, short bool) error {
			m.Row.Bound = bound
			return run(ctx, m, short, tags, env)
		}}
	}
	const none = "none: its memory grows"
	return []row.Program{
		program("in a c_heap, trim 1s", "c_heap", "the library ends the process, after a line with the size to set"),
		program("as published", "", none),
		program("as published, jemalloc without decay", "", none, "LD_PRELOAD=libjemalloc.so.2",
			"MALLOC_CONF=background_thread:true,dirty_decay_ms:0,muzzy_decay_ms:0"),
	}
}

// run builds the program and fills the row with the figures of its process. A short run has one of
// four rounds, and no idle time.
func run(ctx context.Context, m *row.Meter, short bool, tags string, env []string) error {
	folder, err := os.MkdirTemp("", "trees")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, "trees")
	build := exec.CommandContext(ctx, "go", "build", "-C", "../bench", "-tags="+tags, "-o", path, "./resident/trees")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("%v: %w: %s", build, err, out)
	}
	rounds := "4"
	if short {
		rounds = "1"
	}
	program := exec.CommandContext(ctx, path, rounds)
	program.Env = slices.Concat(os.Environ(), env)
	// The loader warns if the library isn't installed: then glibc's malloc is in use.
	var warned bytes.Buffer
	program.Stderr = &warned
	out, err := program.Output()
	if err != nil || warned.Len() > 0 && !short {
		return errors.Join(err, errors.New(warned.String()))
	}
	var f struct {
		Resident, Outside, Garbage, Collections, CPU, Used float64
		OutsideError                                       float64 `json:"outside_error"`
	}
	if err := json.Unmarshal(out, &f); err != nil {
		return fmt.Errorf("%q: %w", out, err)
	}
	m.Row.Resident, m.Row.Garbage, m.Row.Collections = uint64(f.Resident), uint64(f.Garbage), uint32(f.Collections)
	m.Row.Outside, m.Row.MaybeGo = uint64(f.Outside), uint64(f.OutsideError)
	m.Row.Time = time.Duration(f.CPU * float64(time.Millisecond))
	m.Add("resident with all trees", f.Used, "bytes")
	return nil
}
