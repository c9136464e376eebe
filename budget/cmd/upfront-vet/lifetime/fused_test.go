package lifetime

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/upfront-mem/upfront/tests/step"
)

// forms returns a module of the forms of testdata/fused, and their text.
func forms(t *testing.T) (dir, text string) {
	t.Helper()
	data, err := os.ReadFile("testdata/fused/forms.go")
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	module := "module example.com/forms\n\ngo 1.26\n"
	for name, text := range map[string]string{"forms.go": string(data), "go.mod": module} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir, string(data)
}

// reported returns the lines that the check reports in the package of a folder with one file of
// reports.
func reported(t *testing.T, dir string, args ...string) (lines []int) {
	t.Helper()
	name, err := tool()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(name, slices.Concat([]string{"-fused"}, args, []string{"."})...)
	c.Dir = dir
	out, err := c.CombinedOutput()
	if _, failed := err.(*exec.ExitError); err != nil && !failed {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		found := regexp.MustCompile(`\.go:(\d+):\d+: .*(write|convert)`).FindStringSubmatch(line)
		if found == nil {
			t.Fatalf("%v: %s", err, out)
		}
		n, _ := strconv.Atoi(found[1])
		lines = append(lines, n)
	}
	slices.Sort(lines)
	return lines
}

// multiplyAdds are the instructions that multiply and add, by the target.
var multiplyAdds = map[string]string{
	"GOARCH=arm64":   `\tFN?M(ADD|SUB)[SD]\t`,
	"GOAMD64=v3":     `\tVFN?M(ADD|SUB)`,
	"GOARCH=riscv64": `\tFN?M(ADD|SUB)[SD]\t`,
	"GOARCH=ppc64le": `\tFN?M(ADD|SUB)S?\t`,
	"GOARCH=s390x":   `\tWF?N?M(ADD|SUB)S?\t|\tFM(ADD|SUB)S?\t`,
	"GOARCH=loong64": `\tFN?M(ADD|SUB)[FD]\t`,
}

// fusing returns the functions of a module in which the compiler fuses a product, without those of
// type arguments.
func fusing(t *testing.T, dir, target string) (names []string) {
	t.Helper()
	c := exec.Command("go", "build", "-gcflags=-S", "-o", os.DevNull, ".")
	c.Dir, c.Env = dir, append(os.Environ(), "GOARCH=amd64", "CGO_ENABLED=0", "GOFLAGS=", target)
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	instruction, name := regexp.MustCompile(multiplyAdds[target]), ""
	for line := range strings.Lines(string(out)) {
		if head, _, ok := strings.Cut(line, " STEXT "); ok {
			name = head[strings.LastIndexByte(head, '.')+1:]
		} else if instruction.MatchString(line) && !strings.Contains(name, "]") && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// TestFusedForms checks the reports against a list of forms, and the list against the compiler: it
// fuses the forms that are named so, and no others but spare ones.
func TestFusedForms(t *testing.T) {
	step.Needs(t, step.Check)
	dir, text := forms(t)
	want := marked(text)
	var names []string // that the compiler fuses
	form := regexp.MustCompile(`^func ((fused|complex|exact|silent)\w+)`)
	for line := range strings.Lines(text) {
		if found := form.FindStringSubmatch(line); found != nil {
			names = append(names, found[1])
		}
	}
	slices.Sort(names)
	if len(names) < 40 || len(want) < 49 {
		t.Fatalf("%d forms, %d products", len(names), len(want))
	}
	if got := reported(t, dir, "-fused.also=example.com/..."); !slices.Equal(got, want) {
		t.Errorf("reported are lines %v, of %v", got, want)
	}
	isSpare := func(name string) bool { return strings.HasPrefix(name, "spare") }
	got := slices.DeleteFunc(slices.Sorted(slices.Values(fusing(t, dir, "GOARCH=arm64"))), isSpare)
	if !slices.Equal(got, names) {
		t.Errorf("fused for arm64 are %v, of %v", got, names)
	}
	// Other targets fuse fewer forms, and amd64's base none.
	for target := range multiplyAdds {
		if step.Now() < step.Gate && target != "GOAMD64=v3" {
			continue
		}
		got := fusing(t, dir, target)
		if len(got) < 30 {
			t.Errorf("fused with %s are %v", target, got)
		}
		for _, name := range got {
			if !slices.Contains(names, name) && !isSpare(name) {
				t.Errorf("fused with %s: %s", target, name)
			}
		}
	}
}

// marked returns the lines of a text that must be reported.
func marked(text string) (lines []int) {
	n := 0
	for line := range strings.Lines(text) {
		n++
		if strings.HasSuffix(line, "//!\n") {
			lines = append(lines, n)
		}
	}
	return lines
}

// TestFusedBall checks the program whose states package tests compares between targets.
func TestFusedBall(t *testing.T) {
	step.Needs(t, step.Check)
	dir := filepath.Join(root, "tests/testdata/floats")
	text, err := os.ReadFile(filepath.Join(dir, "main.go"))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := reported(t, dir), marked(string(text)); len(want) != 2 || !slices.Equal(got, want) {
		t.Errorf("reported are lines %v, want %v", got, want)
	}
}

// TestFusedFix applies the suggested conversions. Then only products of complex128 are reported,
// and nothing else is fused.
func TestFusedFix(t *testing.T) {
	step.Needs(t, step.Check)
	dir, text := forms(t)
	name, err := tool()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(name, "-fused", "-fused.also=example.com/forms", "-fix", ".")
	c.Dir = dir
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	fixed, err := os.ReadFile(filepath.Join(dir, "forms.go"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(string(fixed), "float64(")-strings.Count(text, "float64(") < 40 {
		t.Errorf("%s", fixed)
	}
	before, _, _ := strings.Cut(string(fixed), "return x * y //!\n}\n\nfunc exactHalf")
	want := []int{1 + strings.Count(before, "\n")}
	if got := reported(t, dir, "-fused.also=example.com/forms"); !slices.Equal(got, want) {
		t.Errorf("reported are lines %v, want %v", got, want)
	}
	for _, name := range fusing(t, dir, "GOARCH=arm64") {
		if !regexp.MustCompile("^(complex|exact|silent)").MatchString(name) {
			t.Errorf("%s is fused", name)
		}
	}
}

// TestFusedPackages checks which packages the check reads: those that import budget/save, and those
// that the flag names.
func TestFusedPackages(t *testing.T) {
	step.Needs(t, step.Check)
	dir, _ := forms(t)
	for flag, want := range map[string]bool{
		"": false, "example.com/forms": true, "example.com/form": false, "example.com": false,
		"example.com/...": true, "example.com/forms/...": true, "example.com/forms/a": false,
		"a,example.com/forms": true, "...": true, ",": false,
	} {
		if got := len(reported(t, dir, "-fused.also="+flag)) > 0; got != want {
			t.Errorf("-fused.also=%s: reported %v", flag, got)
		}
	}
	g := newGarden(t, root)
	const head, body = "package blob_test\n\n", "func speed(v float64) float64 { return v*0.98 + 0.1 }\n"
	g.edit(edit{"arena/blob/speed_test.go", "", head + body})
	g.edit(edit{"tests/pond/speed_test.go", "", "package main\n\nimport _ \"" + upfront + "budget/save\"\n\n" + body})
	list := g.vet()
	if len(list) != 1 || list[0].file != "tests/pond/speed_test.go" || list[0].line != 5 || list[0].check != "fused" ||
		list[0].message != "v * 0.98 isn't rounded before the addition at line 5 on targets that fuse the two, "+
			"such as arm64; write float64(v * 0.98)" {
		t.Error(list)
	}
}

// TestFusedFunctions checks that uses of inexact functions are reported, and others not.
func TestFusedFunctions(t *testing.T) {
	step.Needs(t, step.Check)
	dir, _ := forms(t)
	text := `package forms

import (
	"math"
	"math/cmplx"
	"math/rand/v2"
)

var _ = math.Floor(math.Sqrt(2)) + math.FMA(1, 2, 3)
var _ = math.Sin(1)
var _ = [...]func(float64) float64{math.Abs, math.Exp}
var _ = cmplx.Conj(1)
var _ = cmplx.Abs(1)
var _ = rand.Float64()
var _ = rand.NormFloat64()
var _ = math.Log(2) //upfront:keeps it is only shown
`
	if err := os.WriteFile(filepath.Join(dir, "forms.go"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if got, want := reported(t, dir, "-fused.also=..."), []int{10, 11, 13, 15}; !slices.Equal(got, want) {
		t.Errorf("reported are lines %v, want %v", got, want)
	}
}
