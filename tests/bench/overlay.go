package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// overlay replaces files of frogpond for the go command: with frogpond's source, changed to take
// memory from the Go heap (testdata/goheap).
type overlay struct {
	internal string // frogpond's packages
	folder   string // the new files
	instead  map[string]string
}

// onGoHeap replaces the uses of upfront's memory in frogpond's source.
var onGoHeap = []struct {
	what *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`\bscope\.(Plain|Pool|HandlePool|Maker|Addr)\[`), "goheap.$1["},
	{regexp.MustCompile(`\barena\.(Ptr|Slice)\[`), "goheap.$1["},
	{regexp.MustCompile(`\bscope\.AddrOf\(`), "goheap.AddrOf("},
	{regexp.MustCompile(`\barena\.(PtrTo|SliceOf)\(`), "goheap.$1("},
	{regexp.MustCompile(`\bsave\.(Begin|NewRing)\(`), "goheap.$1("},
	{regexp.MustCompile(`\*save\.(Ring|State)\b`), "*goheap.$1"},
	// the state's own ring; no work calls Attach
	{regexp.MustCompile(`\bAttach\((r\.number, p\.level\.Snapshots)\)`), "Attach($1.Ring)"},
	{regexp.MustCompile(` \|\| !level\.State:`), ":"}, // the region of a state is zeroed
}

const heapPackage = "github.com/upfront-mem/upfront/tests/frogpond/internal/goheap"

// buildPond compiles frogpond as it is, or with its memory replaced.
func buildPond(folder, who string) (program string, err error) {
	root, err := filepath.Abs("../..")
	if err != nil {
		return "", err
	}
	program = filepath.Join(folder, strings.ReplaceAll(who, " ", ""))
	line := []string{"build", "-o", program}
	if who != library {
		o := overlay{filepath.Join(root, "tests", "frogpond", "internal"), program + ".files", map[string]string{}}
		list, err := o.write(who == byHand)
		if err != nil {
			return "", err
		}
		line = append(line, "-overlay", list)
	}
	c := exec.Command("go", append(line, "./tests/frogpond")...)
	c.Dir = root
	if out, err := c.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go %s: %w: %s", strings.Join(line, " "), err, out)
	}
	return program, nil
}

func (o *overlay) write(careful bool) (list string, err error) {
	for _, name := range []string{"doom", "game", "serve", "udp"} {
		if err := o.rewrite(name); err != nil {
			return "", err
		}
	}
	heap := func(text []byte) []byte {
		return bytes.Replace(text, []byte("const careful = false"), fmt.Append(nil, "const careful = ", careful), 1)
	}
	if err := o.copy(filepath.Join("testdata", "goheap"), "goheap", heap); err != nil {
		return "", err
	}
	same := func(text []byte) []byte { return text }
	for _, name := range []string{"game", "serve"} {
		if err := o.copy(filepath.Join("testdata", "goheap", name), name, same); err != nil {
			return "", err
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": o.instead})
	if err != nil {
		return "", err
	}
	list = filepath.Join(o.folder, "overlay.json")
	return list, os.WriteFile(list, text, 0o600)
}

// rewrite makes a package of frogpond take its memory from the Go heap.
func (o *overlay) rewrite(name string) error {
	return o.copy(filepath.Join(o.internal, name), name, func(text []byte) []byte {
		for _, r := range onGoHeap {
			text = r.what.ReplaceAll(text, []byte(r.with))
		}
		if !bytes.Contains(text, []byte("goheap.")) {
			return text
		}
		text = bytes.Replace(text, []byte("\nimport "), []byte("\nimport \""+heapPackage+"\"\n\nimport "), 1)
		// An unused import is an error.
		for _, used := range []string{"arena.Base", "scope.Scope", "save.Ring"} {
			if name, _, _ := strings.Cut(used, "."); bytes.Contains(text, []byte("/"+name+"\"\n")) {
				text = append(text, "\nvar _ "+used+"\n"...)
			}
		}
		return text
	})
}

// copy writes the files of a folder, changed, as the files of a package.
func (o *overlay) copy(from, name string, change func([]byte) []byte) error {
	files, err := filepath.Glob(filepath.Join(from, "*.go"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("no Go file in %s: %w", from, err)
	}
	if err := os.MkdirAll(filepath.Join(o.folder, name), 0o700); err != nil {
		return err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		base := filepath.Base(file)
		to := filepath.Join(o.folder, name, base)
		if err := os.WriteFile(to, change(text), 0o600); err != nil {
			return err
		}
		o.instead[filepath.Join(o.internal, name, base)] = to
	}
	return nil
}
