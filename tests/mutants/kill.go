package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/upfront-mem/upfront/tests/step"
)

// limit is for a killer that isn't expected to hang, and for each compilation.
const limit = 10 * time.Minute

// kind is how a killer ended.
type kind int

const (
	failed   kind = iota // no result: not compiled, no test, or a limit
	survived             // it passed
	dead                 // a test failed
)

type verdict struct {
	kind   kind
	by     string // the test that failed
	output string
}

func failure(err error, output string) verdict {
	return verdict{kind: failed, output: output + err.Error() + "\n"}
}

// control runs killers of one build without a mutant. The verdicts are by the killers' strings.
func (r *runner) control(ks []killer) map[string]verdict {
	verdicts := map[string]verdict{}
	dir, err := os.MkdirTemp(r.dir, "control")
	if err != nil {
		return map[string]verdict{ks[0].String(): failure(err, "")}
	}
	defer os.RemoveAll(dir)
	program, built := "", verdict{}
	for _, k := range ks {
		if program == "" || k.folder == "" {
			program, built = r.build(k, dir, nil)
		}
		if built.kind != failed {
			built = verdict{kind: survived}
		}
		if v := built; v.kind == failed {
			verdicts[k.String()] = v
		} else {
			verdicts[k.String()] = r.test(k, program)
		}
	}
	return verdicts
}

// kill runs the killer of m with m.
func (r *runner) kill(m *mutant) verdict {
	dir, err := os.MkdirTemp(r.dir, m.name)
	if err != nil {
		return failure(err, "")
	}
	defer os.RemoveAll(dir)
	files, err := m.apply(r.root)
	if err != nil {
		return failure(err, "")
	}
	program, v := r.build(m.killer, dir, files)
	if program == "" {
		return v
	}
	return r.test(m.killer, program)
}

// build builds a killer in dir, with files of the tree replaced. It returns the program, or "" and
// a verdict.
func (r *runner) build(k killer, dir string, files map[string]string) (string, verdict) {
	program := filepath.Join(dir, "mutant.test")
	var cmd *exec.Cmd
	var err error
	if k.folder == "" {
		cmd, err = r.buildC(k, dir, program, files)
	} else {
		cmd, err = r.buildGo(k, dir, program, files)
	}
	if err != nil {
		return "", failure(err, "")
	}
	output, err := output(cmd, limit)
	if err == nil {
		if _, err = os.Stat(program); err != nil {
			err = errors.New("the package has no tests in this build")
		}
	}
	if err != nil {
		return "", failure(fmt.Errorf("it doesn't compile: %w", err), output)
	}
	return program, verdict{kind: survived}
}

func (r *runner) buildGo(k killer, dir, program string, files map[string]string) (*exec.Cmd, error) {
	name, err := overlay(r.root, dir, files)
	if err != nil {
		return nil, err
	}
	// go test also links without symbols.
	args := []string{"test", "-vet=off", "-ldflags=-s -w", "-c", "-o", program, "-overlay", name}
	args = append(args, k.flags...)
	cmd := exec.Command("go", append(args, ".")...)
	cmd.Dir = filepath.Join(r.root, filepath.FromSlash(k.folder))
	if k.later != "" {
		cmd.Env = append(os.Environ(), "GOTOOLCHAIN="+k.later)
	}
	return cmd, nil
}

// overlay writes the files that replace those of the tree into dir, with a list of them for the go
// command, and returns the name of the list.
func overlay(root, dir string, files map[string]string) (string, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return "", err
	}
	replace := map[string]string{}
	for file, text := range files {
		name := filepath.Join(dir, strings.ReplaceAll(file, "/", "_"))
		if err = os.WriteFile(name, []byte(text), 0o644); err != nil {
			return "", err
		}
		replace[filepath.Join(root, filepath.FromSlash(file))] = name
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	name := overlayIn(dir)
	return name, os.WriteFile(name, text, 0o644)
}

// overlayIn returns the name of the list that overlay writes.
func overlayIn(dir string) string { return filepath.Join(dir, "overlay.json") }

// buildC builds the C core with the files of tests/c that define the killer's functions.
func (r *runner) buildC(k killer, dir, program string, files map[string]string) (*exec.Cmd, error) {
	core := filepath.Join(dir, "arena_c")
	if err := os.RemoveAll(core); err != nil {
		return nil, err
	}
	if err := os.CopyFS(core, os.DirFS(filepath.Join(r.root, "arena_c"))); err != nil {
		return nil, err
	}
	for file, text := range files {
		if filepath.Dir(file) != "arena_c" {
			return nil, fmt.Errorf("%s: a test of tests/c kills mutants of arena_c alone", file)
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.FromSlash(file)), []byte(text), 0o644); err != nil {
			return nil, err
		}
	}
	sources, err := filepath.Glob(filepath.Join(core, "*.c"))
	if err != nil {
		return nil, err
	}
	calls := ""
	for _, test := range k.tests {
		file, err := fileOfC(r.root, test)
		if err != nil {
			return nil, err
		}
		sources = append(sources, file)
		calls += fmt.Sprintf("    puts(\"=== RUN   %s\");\n    fflush(stdout);\n    %[1]s();\n    puts(\"--- PASS: "+
			"%[1]s\");\n", test)
	}
	main := filepath.Join(dir, "main.c")
	text := "#include \"check.h\"\n\nint main(void) {\n" + calls + "    return 0;\n}\n"
	if err = os.WriteFile(main, []byte(text), 0o644); err != nil {
		return nil, err
	}
	args := append([]string{"-std=c11", "-O1", "-I", core, "-I", filepath.Join(r.root, "tests/c")}, k.flags...)
	return exec.Command("cc", append(append(args, "-o", program, main), sources...)...), nil
}

// fileOfC returns the file of tests/c that defines a test.
func fileOfC(root, test string) (string, error) {
	files, err := filepath.Glob(filepath.Join(root, "tests/c/*.c"))
	if err != nil {
		return "", err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		if strings.Contains(string(text), "\nvoid "+test+"(void) {") {
			return file, nil
		}
	}
	return "", fmt.Errorf("no file of tests/c defines %s", test)
}

var (
	failLine = regexp.MustCompile(`(?m)^--- FAIL: (\S+)`)
	runLine  = regexp.MustCompile(`(?m)^=== RUN   (\S+)`)
	timeLine = regexp.MustCompile(`(?m)^panic: test timed out after `)
)

// test runs the program of a killer, in the folder of its package.
func (r *runner) test(k killer, program string) verdict {
	most := limit
	if k.hangs > 0 {
		most = k.hangs
	}
	cmd := exec.Command(program)
	if k.folder != "" {
		cmd.Args = append(cmd.Args, "-test.run", k.pattern(), "-test.v", "-test.paniconexit0", "-test.timeout",
			most.String())
		cmd.Dir = filepath.Join(r.root, filepath.FromSlash(k.folder))
	}
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); name != step.Variable && name != step.TimeVariable {
			cmd.Env = append(cmd.Env, variable)
		}
	}
	if k.step != "" {
		cmd.Env = append(cmd.Env, step.Variable+"="+k.step)
	}
	if k.later != "" {
		cmd.Env = append(cmd.Env, "GOTOOLCHAIN="+k.later)
	}
	if k.folder != "" { // programs that the test builds also have the mutant
		flags := os.Getenv("GOFLAGS") + " -overlay=" + overlayIn(filepath.Dir(program))
		cmd.Env = append(cmd.Env, "GOFLAGS="+strings.TrimSpace(flags))
	}
	text, err := output(cmd, most+10*time.Second)
	late := errors.Is(err, context.DeadlineExceeded) || timeLine.MatchString(text)
	last := func(line *regexp.Regexp) string {
		if found := line.FindAllStringSubmatch(text, -1); found != nil {
			return found[len(found)-1][1]
		}
		return ""
	}
	switch {
	case late && k.hangs > 0:
		return verdict{dead, last(runLine) + ", which hangs", text}
	case late:
		return failure(fmt.Errorf("it still ran after %v, and isn't marked as hanging", most), text)
	case err == nil:
		for _, test := range k.tests {
			if !strings.Contains("\n"+text, "\n--- PASS: "+test) {
				return failure(fmt.Errorf("%s didn't run: it is skipped, or isn't there", test), text)
			}
		}
		return verdict{survived, "", text}
	case failLine.MatchString(text):
		return verdict{dead, failLine.FindStringSubmatch(text)[1], text}
	case last(runLine) != "" && k.folder == "":
		return verdict{dead, last(runLine), text}
	case last(runLine) != "":
		return verdict{dead, last(runLine) + ", which crashed", text}
	}
	return failure(fmt.Errorf("no test failed: %w", err), text)
}

// output runs a command for a limited time and returns its output.
func output(cmd *exec.Cmd, most time.Duration) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), most)
	defer cancel()
	limited := exec.CommandContext(ctx, cmd.Path, cmd.Args[1:]...)
	limited.Dir, limited.Env = cmd.Dir, cmd.Env
	limited.WaitDelay = 10 * time.Second // for children that keep the pipe open
	text, err := limited.CombinedOutput()
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return string(text), err
}
