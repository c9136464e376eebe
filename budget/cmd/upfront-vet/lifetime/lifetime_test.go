package lifetime

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/upfront-mem/upfront/tests/step"
)

const root = "../../../.."

// tool builds upfront-vet as make does, because go vet caches the results for libraries by tool.
var tool = sync.OnceValues(func() (string, error) {
	var err error
	if toolDir, err = os.MkdirTemp("", "upfront-vet"); err != nil {
		return "", err
	}
	name := filepath.Join(toolDir, "upfront-vet")
	out, err := exec.Command("go", "build", "-buildvcs=false", "-o", name, "..").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return name, nil
})

var toolDir string // removed at the end

func TestMain(m *testing.M) {
	code := m.Run()
	if toolDir != "" {
		os.RemoveAll(toolDir)
	}
	os.Exit(code)
}

// TestFields checks that a step of a field isn't taken for another step.
func TestFields(t *testing.T) {
	for i := range 200 {
		for _, step := range []string{target, address, opened, temporary, allocated, held} {
			if strings.Contains(field(i), step) {
				t.Errorf("field %d: %s contains %s", i, field(i), step)
			}
		}
	}
	if field(46) == field(47) {
		t.Error("fields 46 and 47 are one step")
	}
}

// slicesOf returns the plants of several lists, with their files below a folder.
func slicesOf(below string, lists ...[]plant) (all []plant) {
	for _, p := range slices.Concat(lists...) {
		p.file = below + p.file
		if p.at != "" {
			p.at = below + p.at
		}
		p.also = slices.Clone(p.also)
		for i := range p.also {
			p.also[i].file = below + p.also[i].file
		}
		all = append(all, p)
	}
	return all
}

// text is a file with edits.
type text struct{ was, is string }

// A garden is a module's files with planted errors. go vet -overlay reads them, so the files on
// disk stay unchanged.
type garden struct {
	t     *testing.T
	dir   string
	files map[string]*text
}

func newGarden(t *testing.T, dir string) *garden {
	t.Helper()
	step.Needs(t, step.Check)
	dir, err := filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	return &garden{t, dir, map[string]*text{}}
}

func (g *garden) edit(e edit) {
	g.t.Helper()
	file := g.files[e.file]
	if file == nil {
		data, err := os.ReadFile(filepath.Join(g.dir, e.file))
		if err != nil && !os.IsNotExist(err) { // without a file, the plant adds one
			g.t.Fatal(err)
		}
		file = &text{string(data), string(data)}
		g.files[e.file] = file
	}
	if e.old == "" {
		file.is += e.new
		return
	}
	if strings.Count(file.was, e.old) != 1 || strings.Count(file.is, e.old) != 1 {
		g.t.Fatalf("%s hasn't this once, or another plant has changed it:\n%s", e.file, e.old)
	}
	file.is = strings.Replace(file.is, e.old, e.new, 1)
}

// found is a report, with its file relative to the module's root.
type found struct {
	file    string
	line    int
	check   string
	message string
}

func (g *garden) vet() (list []found) {
	g.t.Helper()
	name, err := tool()
	if err != nil {
		g.t.Fatal(err)
	}
	beside := g.t.TempDir()
	replace := map[string]string{}
	args := []string{"vet", "-vettool", name, "-json", "-overlay", filepath.Join(beside, "overlay.json")}
	for name, file := range g.files {
		to := filepath.Join(beside, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			g.t.Fatal(err)
		}
		if err := os.WriteFile(to, []byte(file.is), 0o644); err != nil {
			g.t.Fatal(err)
		}
		replace[filepath.Join(g.dir, name)] = to
		if folder := "./" + filepath.Dir(name); !slices.Contains(args, folder) {
			args = append(args, folder)
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err == nil {
		err = os.WriteFile(filepath.Join(beside, "overlay.json"), overlay, 0o644)
	}
	if err != nil {
		g.t.Fatal(err)
	}
	command := exec.Command("go", args...)
	command.Dir = g.dir
	var said bytes.Buffer
	command.Stderr = &said
	out, err := command.Output()
	if err != nil {
		g.t.Fatalf("%v: %s%s", err, out, &said)
	}
	decoder := json.NewDecoder(bytes.NewReader(out))
	for {
		var packages map[string]map[string][]struct{ Posn, Message string }
		if err := decoder.Decode(&packages); err == io.EOF {
			return list
		} else if err != nil {
			g.t.Fatalf("%v: %s", err, out)
		}
		for _, checks := range packages {
			for check, diagnostics := range checks {
				for _, d := range diagnostics {
					at := strings.Split(d.Posn, ":")
					line, _ := strconv.Atoi(at[1])
					file := strings.TrimPrefix(at[0], g.dir+"/")
					for name := range g.files { // of this run, or of one that go vet has cached
						if strings.HasSuffix(at[0], "/"+name) {
							file = name
						}
					}
					if f := (found{file, line, check, d.Message}); !slices.Contains(list, f) {
						list = append(list, f)
					}
				}
			}
		}
	}
}

// TestPlanted checks that exactly the planted errors are found, each at its place, and nothing in
// the controls.
func TestPlanted(t *testing.T) {
	count := 0
	for module, plants := range planted {
		count += len(plants)
		t.Run(module, func(t *testing.T) { checkPlants(t, module, plants) })
	}
	if count < 30 {
		t.Errorf("%d errors are planted", count)
	}
}

func checkPlants(t *testing.T, module string, plants []plant) {
	wrong, right := newGarden(t, filepath.Join(root, module)), newGarden(t, filepath.Join(root, module))
	for _, p := range plants {
		for _, e := range p.also {
			wrong.edit(e)
			right.edit(e)
		}
		wrong.edit(edit{p.file, p.old, strings.Replace(p.wrong, "//!", "// "+p.name, 1)})
		right.edit(edit{p.file, p.old, p.right})
	}
	list := wrong.vet()
	for _, p := range plants {
		file, line := wrong.place(p)
		i := slices.IndexFunc(list, func(f found) bool {
			return f.file == file && f.line == line && f.check == p.check
		})
		if i < 0 {
			t.Errorf("%s: not found at %s:%d", p.name, file, line)
			continue
		}
		if !strings.Contains(list[i].message, p.want) {
			t.Errorf("%s: it says %s", p.name, list[i].message)
		}
		list = slices.Delete(list, i, i+1)
	}
	for _, f := range list {
		t.Errorf("reported beside the plants: %s:%d: %s: %s", f.file, f.line, f.check, f.message)
	}
	for _, f := range right.vet() {
		t.Errorf("reported of the controls: %s:%d: %s: %s", f.file, f.line, f.check, f.message)
	}
}

// place returns the file and line at which a plant must be found.
func (g *garden) place(p plant) (file string, line int) {
	g.t.Helper()
	file, piece := p.file, "// "+p.name+"\n"
	if p.at != "" {
		file, piece, _ = strings.Cut(p.at, ":")
	}
	before, _, ok := strings.Cut(g.files[file].is, piece)
	if !ok {
		g.t.Fatalf("%s: no such line: %s", p.name, piece)
	}
	return file, 1 + strings.Count(before, "\n") + strings.Count(strings.TrimSuffix(piece, "\n"), "\n")
}
