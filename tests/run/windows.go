package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// wine is Debian's Wine, which has no link in the PATH without the package of the same name.
const wine = "/usr/lib/wine/wine64"

// underWine is a flag of the go command. GOTMPDIR is only for the go command, since t.TempDir
// would use it.
const underWine = "-exec=env -u GOTMPDIR " + wine

// windows calls do with the environment of a compiled target, if Wine and the compiler are on this
// machine.
func windows(x compiled, do func(p *prover, x compiled, env []string) error) func(p *prover) error {
	return func(p *prover) error {
		if !have(x.CC) {
			p.lacks("windows", x.CC, x.Debian[0])
			return nil
		}
		if !have(wine) {
			p.lacks("windows", wine, "wine64")
			return nil
		}
		env, err := p.prefix(x)
		if err != nil {
			return err
		}
		if _, err = os.Stat(wadFolder); err != nil {
			p.lacks("windows", "Freedoom", "freedoom")
		}
		// Wine's drives have no other file of a Debian package than Freedoom's; other parts run the
		// tests with these.
		defer func(known int) { p.unproven = p.unproven[:known] }(len(p.unproven))
		return do(p, x, env)
	}
}

// wineGate runs the packages of the root module, then the tool's, then the README's program.
func wineGate(p *prover, x compiled, env []string) error {
	run := []string{underWine, vetted, limit}
	if err := p.goTest("", env, false, slices.Concat(run, x.Tests)...); err != nil {
		return err
	}
	if err := p.goTest("budget/cmd", env, false, slices.Concat(run, []string{"./upfront"})...); err != nil {
		return err
	}
	return p.readmeProgram(env)
}

// checkedUnderWine are packages that pass in checked builds for Windows. Package budget/save fails:
// without addresses apart, a state has the fills of free bytes, where a restored one must have
// zeros.
var checkedUnderWine = []string{"./arena/...", "./budget", "./budget/record", "./budget/view/...", "./platform/...",
	"./scope/..."}

// wineSoak plays all maps, and runs the tests of the library in checked builds.
func wineSoak(p *prover, _ compiled, env []string) error {
	run := []string{underWine, vetted, limit}
	long := slices.Concat(env, []string{"UPFRONT_STEP=soak"})
	if err := p.goTest("", long, false,
		slices.Concat(run, []string{"-run=^TestHashes$", "./" + frogpond})...); err != nil {
		return err
	}
	return p.goTest("", env, false, slices.Concat(run, []string{"-tags=checked"}, checkedUnderWine)...)
}

// prefix makes a Wine prefix in build/wine, and returns the environment for programs of the target.
// The prefix has bcryptprimitives.dll, and one drive besides C: the repository, so that no test
// reads files of Linux such as /proc. A link there leads to Freedoom's files.
func (p *prover) prefix(x compiled) (env []string, err error) {
	root, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	prefix := filepath.Join(root, "build/wine")
	temporary := filepath.Join(prefix, "_go") // no package of ./..., also when a run was killed
	env = append(slices.Clone(x.Env), "WINEPREFIX="+prefix, "WINEDEBUG=-all", "GOTMPDIR="+temporary,
		`DOOMWADDIR=Z:\build\wine\freedoom`)
	if err = os.MkdirAll(temporary, 0o755); err != nil {
		return nil, err
	}
	system := filepath.Join(prefix, "drive_c/windows/system32")
	if _, err = os.Stat(system); errors.Is(err, fs.ErrNotExist) {
		// Wine 8 without its 32-bit part reports a failed command here, and the prefix is complete.
		if err = p.do(command{args: []string{wine, "wineboot", "--init"}}.with(env...)); err != nil {
			return nil, err
		}
	}
	for link, to := range map[string]string{"dosdevices/z:": root, "freedoom": wadFolder} {
		link = filepath.Join(prefix, link)
		if err = os.Remove(link); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if err = os.Symlink(to, link); err != nil {
			return nil, err
		}
	}
	return env, p.do(command{args: []string{x.CC, "-Wall", "-Wextra", "-Werror", "-O2", "-shared",
		"-o", filepath.Join(system, "bcryptprimitives.dll"), "cross/windows/bcryptprimitives.c", "-ladvapi32"}})
}

// readmeProgram runs the README's program, and compares its output with the README's.
func (p *prover) readmeProgram(env []string) error {
	page, err := os.ReadFile("README.md")
	if err != nil {
		return err
	}
	between := func(text, begin string) (block, rest string) {
		_, text, _ = strings.Cut(text, begin)
		block, rest, _ = strings.Cut(text, "```\n")
		return block, rest
	}
	program, rest := between(string(page), "```go\n")
	imports, _ := between(rest, "```go\n")
	want, _ := between(rest, "```text\n")
	dir, err := os.MkdirTemp("build/wine", "_readme") // no package of ./...
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err = os.WriteFile(filepath.Join(dir, "main.go"), []byte(imports+"\n"+program), 0o644); err != nil {
		return err
	}
	got, err := p.output(goCommand("", "run", underWine, filepath.Join(dir, "main.go")).with(env...))
	if err == nil && got != want {
		err = fmt.Errorf("README.md's program printed %q, want %q", got, want)
	}
	return err
}
