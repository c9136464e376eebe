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

	"github.com/upfront-mem/upfront/tests/step"
)

// targetsFile lists the targets and devices.
const targetsFile = "cross/targets.json"

// targets is the content of the file. Each list is in build order.
type targets struct {
	Targets  []target   `json:"targets"`
	Compiled []compiled `json:"compiled"`
	Devices  []device   `json:"devices"`
}

// target is a system with a compiler and an emulator, for frogpond and the tests.
type target struct {
	Name     string   `json:"name"`
	Note     string   `json:"note"`
	ForTests bool     `json:"forTests"` // no device uses it
	Env      []string `json:"env"`      // for the go command
	Flags    []string `json:"flags"`    // for go build and go test
	Machine  string   `json:"machine"`  // as the compiler and the emulator name it
	ABI      string   `json:"abi"`      // last part of the compiler's triple; "": gnu
	CFlags   string   `json:"cflags"`   // for the C core's tests
	RunEnv   []string `json:"runEnv"`
	Debian   []string `json:"debian"` // packages with the compiler, its C library and the emulator
	// packages whose tests run under the emulator; "all": those that aren't left out
	Tests []string `json:"tests"`
	Paged []string `json:"paged"` // those of Tests that also run with pages of 16 and 64 KiB
	Skip  string   `json:"skip"`  // tests to leave out
}

// compiled is a system without an emulator. Wine runs Windows' tests.
type compiled struct {
	Name     string   `json:"name"`
	Note     string   `json:"note"`
	Env      []string `json:"env"`
	CC       string   `json:"cc"`
	Debian   []string `json:"debian"`
	Commands []string `json:"commands"` // separated by spaces, with the shell's patterns
	Tests    []string `json:"tests"`    // patterns of packages, for Wine
}

// device is a kind of machine, with a plan of its own in cross/NAME.json.
type device struct {
	Name   string `json:"name"`
	Note   string `json:"note"`
	Target string `json:"target"`
	Memory string `json:"memory"`
	Page   int    `json:"page"`   // bytes
	CPU    string `json:"cpu"`    // emulated
	CFlags string `json:"cflags"` // for the C compiler
	Env    string `json:"env"`    // for the go command
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

// check finds names that don't exist.
func (t targets) check() error {
	for _, x := range t.Targets {
		for _, name := range slices.Concat(x.Tests, x.Paged) {
			if _, err := os.Stat(name); name != "all" && (err != nil || x.leftOut(name)) {
				return fmt.Errorf("%s: target %s: tests of %s don't run under an emulator", targetsFile, x.Name, name)
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

// windows returns the system that Wine runs.
func (t targets) windows() compiled {
	return t.Compiled[slices.IndexFunc(t.Compiled, func(x compiled) bool { return len(x.Tests) > 0 })]
}

func (t targets) target(name string) (target, error) {
	for _, x := range t.Targets {
		if x.Name == name {
			return x, nil
		}
	}
	return target{}, fmt.Errorf("%s: no target %q", targetsFile, name)
}

// forDevices returns the targets that devices use.
func (t targets) forDevices() []target {
	return slices.DeleteFunc(slices.Clone(t.Targets), func(x target) bool { return x.ForTests })
}

// here reports whether the target is this machine.
func (t target) here() bool {
	return slices.Contains(t.Env, "GOARCH="+runtime.GOARCH) && runtime.GOOS == "linux"
}

func (t target) triple() string { return t.Machine + "-linux-" + cmp.Or(t.ABI, "gnu") }

func (t target) cc() string {
	if t.here() {
		return "gcc"
	}
	return t.triple() + "-gcc"
}

func (t target) folder() string { return filepath.Join("build", t.Name) }

// env returns the environment of the go command. AddressSanitizer needs a compiler whose --version
// begins with gcc, so CC is a link of that name there.
func (t target) env() []string {
	cc := t.cc()
	if link, err := filepath.Abs(filepath.Join(t.folder(), "gcc")); err == nil && slices.Contains(t.Flags, "-asan") {
		cc = link
	}
	return append(slices.Clone(t.Env), "CC="+cc)
}

// run returns the start of the command line that runs a program of the target here. Its pages have
// page bytes, or the system's size if page is 0.
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

// emulator is a script that runs a test's program by a line of an emulator, so that the program can
// start itself.
const emulator = "tests/run/emulate.sh"

// exec returns the flag of go test for programs of the target, none if they run here as they are.
// In the quick form they can start themselves.
func (t target) exec(form step.Step, page int) ([]string, error) {
	line := strings.Join(t.run(page), " ")
	switch {
	case line == "":
		return nil, nil
	case form != step.Test || page == 0 && t.here():
		return []string{"-exec=" + line}, nil
	}
	script, err := filepath.Abs(emulator)
	return []string{fmt.Sprintf("-exec='%s' '%s'", script, line)}, err
}

// skip returns the flag of go test for the tests to leave out.
func (t target) skip() string {
	var names []string
	if t.Skip != "" {
		names = append(names, t.Skip)
	}
	if t.here() {
		return "-skip=" + strings.Join(names, "|")
	}
	for _, e := range exceptions {
		if e.test != "" && e.of(t) {
			names = append(names, "^"+e.test+"$")
		}
	}
	return "-skip=" + strings.Join(names, "|")
}

// lacks returns the missing tool of the target: its compiler, or the C library that the compiler
// links. It returns "" if both are on this machine.
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

// packages returns the Debian packages that all commands need, besides Go, gcc and make.
func (t targets) packages() (list []string) {
	list = slices.Clone(debian)
	for _, name := range []string{"git", "npm", "python3"} {
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

// debian are the packages that the tests and steps need.
var debian = []string{"chromium", "clang", "freedoom", "g++-aarch64-linux-gnu", "libenet-dev", "libjemalloc2",
	"liblua5.4-dev", "libmimalloc-dev", "libphysfs-dev", "libsqlite3-dev", "lld", "musl-tools", "pkg-config", "strace",
	"valgrind"}
