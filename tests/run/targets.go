package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// targetsFile lists the targets and devices.
const targetsFile = "cross/targets.json"

// targets is the content of the file. Every list is in the order in which it is built.
type targets struct {
	Targets  []target   `json:"targets"`
	Compiled []compiled `json:"compiled"`
	Devices  []device   `json:"devices"`
}

// target is a system that frogpond and the tests are built for, and run for under an emulator.
type target struct {
	Name     string   `json:"name"`
	Note     string   `json:"note"`
	ForTests bool     `json:"forTests"` // nothing of it goes to a device
	Env      []string `json:"env"`      // of the go command
	Flags    []string `json:"flags"`    // of go build and go test
	Machine  string   `json:"machine"`  // as the compiler and the emulator name it
	ABI      string   `json:"abi"`      // the last part of the compiler's triple, gnu if empty
	CFlags   string   `json:"cflags"`   // of the C compiler, for the core's tests
	RunEnv   []string `json:"runEnv"`
	Debian   []string `json:"debian"` // packages with the compiler, its C library and the emulator
	Tests    []string `json:"tests"`  // packages whose tests run under the emulator; "all": those of crossTested
	Paged    []string `json:"paged"`  // of these, those that run again with pages of 16 and 64 KiB
	Skip     string   `json:"skip"`   // tests that are left out
}

// compiled is a system that is compiled for, and not run for.
type compiled struct {
	Name     string   `json:"name"`
	Note     string   `json:"note"`
	Env      []string `json:"env"`
	CC       string   `json:"cc"`
	Debian   []string `json:"debian"`
	Commands []string `json:"commands"` // words with spaces between; the shell's patterns
}

// device is a kind of machine, with a plan of its own in cross/NAME.json.
type device struct {
	Name   string `json:"name"`
	Note   string `json:"note"`
	Target string `json:"target"`
	Memory string `json:"memory"`
	Page   int    `json:"page"`   // bytes
	CPU    string `json:"cpu"`    // that the emulator plays
	CFlags string `json:"cflags"` // of the C compiler
	Env    string `json:"env"`    // of the go command
}

func readTargets() (t targets, err error) {
	text, err := os.ReadFile(targetsFile)
	if err != nil {
		return t, fmt.Errorf("run it in the root of the repository: %w", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err = decoder.Decode(&t); err != nil {
		return t, fmt.Errorf("%s: %w", targetsFile, err)
	}
	return t, t.check()
}

// check finds names that lead nowhere.
func (t targets) check() error {
	for _, x := range t.Targets {
		for _, name := range slices.Concat(x.Tests, x.Paged) {
			if name != "all" && !slices.Contains(crossTested, name) {
				return fmt.Errorf("%s: target %s: tests of %s aren't built for other machines", targetsFile, x.Name, name)
			}
		}
	}
	for _, d := range t.Devices {
		if _, err := t.target(d.Target); err != nil {
			return fmt.Errorf("device %s: %w", d.Name, err)
		}
	}
	return nil
}

func (t targets) target(name string) (target, error) {
	for _, x := range t.Targets {
		if x.Name == name {
			return x, nil
		}
	}
	return target{}, fmt.Errorf("%s: there is no target %q", targetsFile, name)
}

// forDevices are the targets whose files go to a device.
func (t targets) forDevices() []target {
	return slices.DeleteFunc(slices.Clone(t.Targets), func(x target) bool { return x.ForTests })
}

// crossTested are the packages whose tests are built for other machines. The tests that only start
// programs of their own aren't among them: an emulator doesn't start them.
var crossTested = []string{"arena", "arena/blob", "scope", "scope/container", "scope/flow", "scope/flow/source", "budget",
	"budget/budgettest", "budget/record", "budget/view", "platform", "tests/frogpond", "tests/frogpond/internal/doom",
	"tests/frogpond/internal/game", "tests/frogpond/internal/wire", "tests/frogpond/internal/client",
	"tests/frogpond/internal/disk", "tests/conformance"}

// here reports whether the target is this machine.
func (t target) here() bool {
	return slices.Contains(t.Env, "GOARCH="+runtime.GOARCH) && runtime.GOOS == "linux"
}

func (t target) triple() string { return t.Machine + "-linux-" + cmp.Or(t.ABI, "gnu") }

// cc is the C compiler.
func (t target) cc() string {
	if t.here() {
		return "gcc"
	}
	return t.triple() + "-gcc"
}

// folder is where the target's files are built.
func (t target) folder() string { return filepath.Join("build", t.Name) }

// env is the go command's. AddressSanitizer wants a compiler whose --version begins with gcc: a
// link of that name.
func (t target) env() []string {
	link, err := filepath.Abs(filepath.Join(t.folder(), "gcc"))
	if err != nil {
		link = t.cc()
	}
	return append(slices.Clone(t.Env), "CC="+link)
}

// run is the command line that runs a program of the target here, with pages of a size, or the
// system's if that is 0.
func (t target) run(page int) []string {
	var line []string
	if len(t.RunEnv) > 0 {
		line = append([]string{"env"}, t.RunEnv...)
	}
	if page == 0 && t.here() {
		return line
	}
	line = append(line, "qemu-"+t.Machine+"-static", "-L", "/usr/"+t.triple())
	if page != 0 {
		line = append(line, "-p", fmt.Sprint(page))
	}
	return line
}

// lacks names the missing tool of the target: its compiler, or the C library that the compiler
// links.
func (t target) lacks() string {
	out, err := exec.Command(t.cc(), "-print-file-name=crt1.o").Output()
	if err == nil {
		_, err = os.Stat(strings.TrimSpace(string(out)))
	}
	if err != nil {
		return t.cc() + ", or its C library,"
	}
	return ""
}

// packages are the Debian packages that everything needs beside Go, gcc and make.
func (t targets) packages() (list []string) {
	list = slices.Clone(debian)
	for _, name := range []string{"npm", "python3"} {
		if !have(name) { // Debian's npm alone brings hundreds of packages
			list = append(list, name)
		}
	}
	for _, x := range t.Targets {
		if !x.here() {
			list = append(list, x.Debian...)
		}
	}
	for _, x := range t.Compiled {
		list = append(list, x.Debian...)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// debian are the packages that tests and parts of the steps need.
var debian = []string{"chromium", "clang", "freedoom", "libenet-dev", "libjemalloc2", "liblua5.4-dev", "libmimalloc-dev",
	"libphysfs-dev", "libsqlite3-dev", "lld", "pkg-config", "strace", "valgrind"}
