package main

import (
	"cmp"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/upfront-mem/upfront/tests/step"
)

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// limit is the timeout of go test for a package, long enough for a busy machine.
const limit = "-timeout=2h"

// vetted leaves out the vet of go test: in make check, lint has vetted each module. make gate vets
// the builds with other tags.
const vetted = "-vet=off"

// compiling returns the value of GOFLAGS in which all parts of a step compile, so that each package
// is compiled once for a build. Debug information and collections take a third of the compiler's
// time. Without the folders of this machine, TestConsumer finds other modules compiled too.
func compiling() string {
	flags := "-trimpath -gcflags=all=-dwarf=false"
	if have("env") { // Windows may lack it
		flags += " '-toolexec=env GOGC=800'"
	}
	return strings.TrimSpace(os.Getenv("GOFLAGS") + " " + flags)
}

func parts(s step.Step) ([]part, error) {
	m, err := newMatrix()
	if err != nil {
		return nil, err
	}
	t, err := readTargets()
	if err != nil {
		return nil, err
	}
	switch s {
	case step.Test:
		return []part{{"test", "every package's quick tests", func(p *prover) error {
			return p.goTest("", nil, true, "./...")
		}}}, nil
	case step.Check:
		return checkParts(m, t), nil
	case step.Gate:
		return gateParts(t), nil
	}
	return soakParts(t), nil
}

// tests returns the function that runs the tests of packages in a build.
func tests(env []string, flags []string, packages []string) func(p *prover) error {
	return func(p *prover) error {
		return p.goTest("", env, false, slices.Concat([]string{limit}, flags, packages)...)
	}
}

var all = []string{"./..."}

func checkParts(m matrix, t targets) []part {
	check := []string{"UPFRONT_STEP=check"}
	list := []part{
		{"lint", "format; vet of each module; staticcheck of the root and its go.mod", func(p *prover) error {
			return p.lint(nil, false)
		}},
		{"test", "every package's tests in full, in the release build", tests(check, []string{vetted}, all)},
	}
	for _, f := range flavours {
		list = append(list, part{f.name, "quick tests of the packages that differ in this build",
			tests(nil, slices.Concat(f.flags, []string{vetted}), m.of(f.name))})
	}
	return append(list,
		part{"modules", "the tool, upfront-vet, pprof, Prometheus, OpenTelemetry, s2: their tests", readers(check)},
		part{"clients", "wasm modules, SQLite, Lua and Arrow in budgets", clients(check)},
		part{"full", "SQLite and tree-sitter while C's malloc is full", module("tests/full", check)},
		part{"counts", "instructions and counts of tests/bench, compared with the recorded ones", counts(check)},
		part{"arm64", "the C core's tests for arm64 under an emulator; a saved game goes there and back",
			on(t, "linux-arm64", func(p *prover, x target) error {
				if err := p.emulatedCore(x); err != nil {
					return err
				}
				return p.saves(x, "builtin", "MAP03")
			})},
	)
}

func gateParts(t targets) []part {
	gate := []string{"UPFRONT_STEP=gate"}
	list := []part{
		{"lint", "format, vet, staticcheck, upfront-vet and tidiness of each module", func(p *prover) error {
			return p.lint(nil, true)
		}},
		{"test", "every package's tests in full, in the release build", tests(gate, nil, all)},
	}
	for _, f := range flavours {
		list = append(list, part{f.name, "every package's quick tests in this build", tests(nil, f.flags, all)})
	}
	return append(list,
		part{"collector", "scope, budget and the model with a collector that runs all the time and checks itself",
			tests(
				[]string{"GOGC=1", "GODEBUG=gccheckmark=1,clobberfree=1"}, nil,
				[]string{"./scope/...", "./budget/...", "./tests/model"})},
		part{"modules", "the tool, upfront-vet, pprof, Prometheus, OpenTelemetry, s2: their tests", readers(gate)},
		part{"clients", "wasm modules, SQLite, Lua and Arrow in budgets", clients(gate)},
		part{"full", "SQLite and tree-sitter while C's malloc is full, in five builds", module("tests/full", gate)},
		part{"counts", "instructions and counts of tests/bench, compared with the recorded ones", counts(gate)},
		part{"group", "processes in memory cgroups, each with the sum of its plan and a constant",
			module("tests/group", gate)},
		part{"others", "other people's programs in a budget, and other caches: their tests, and short tables",
			others(gate)},
		part{"growth", "frogpond's memory, compared with the record", growth},
		part{"pages", "the pages of a running frogpond in Chromium", pages},
		part{"fuzz", "each fuzz target for 2,000 executions", func(p *prover) error { return p.fuzz("2000x", "") }},
		part{"arm64", "quick tests for arm64 under an emulator; a saved game goes there and back",
			on(t, "linux-arm64", func(p *prover, x target) error {
				if err := p.emulated(x, x.Tests, nil); err != nil {
					return err
				}
				return p.saves(x, "builtin", "MAP03")
			})},
		part{"arm", "quick tests for armv7 under an emulator", on(t, "linux-arm", func(p *prover, x target) error {
			return p.emulated(x, x.Tests, nil)
		})},
		part{"windows", "the library's and frogpond's tests, the tool's and README's program, under Wine",
			windows(t.windows(), wineGate)},
		part{"compiled", "compiled only: Windows and macOS", func(p *prover) error {
			for _, x := range t.Compiled {
				if err := p.compile(x); err != nil {
					return err
				}
			}
			return nil
		}},
	)
}

// readers tests the tool, the exporters of reports, and the compression of saves.
func readers(env []string) func(p *prover) error {
	return func(p *prover) error {
		for _, dir := range []string{"budget/cmd", "budget/with/otel", "budget/with/pprof", "budget/with/prometheus",
			"budget/save/s2"} {
			if err := module(dir, env)(p); err != nil {
				return err
			}
		}
		return nil
	}
}

func clients(env []string) func(p *prover) error {
	return func(p *prover) error {
		return p.do(goCommand("", "run", "./tests/clients", "-out", "build/clients.json").with(env...))
	}
}

// module tests the packages of a module.
func module(dir string, env []string) func(p *prover) error {
	return func(p *prover) error { return p.goTest(dir, env, false, limit, vetted, tags(dir), "./...") }
}

// others tests other people's programs and the comparison of caches, and does a small part of each
// task.
func others(env []string) func(p *prover) error {
	return func(p *prover) error {
		for _, dir := range []string{"tests/others", "tests/others/duckdb", "tests/others/memory",
			"tests/bench/caches"} {
			if err := module(dir, env)(p); err != nil {
				return err
			}
		}
		if err := p.do(goCommand("tests/bench/caches", "run", ".", "-short")); err != nil {
			return err
		}
		return p.do(goCommand("tests/others", "run", ".", "-short"))
	}
}

// counts compares the counts of tests/bench with the recorded counts, and runs the tests of
// tests/bench.
func counts(env []string) func(p *prover) error {
	return func(p *prover) error {
		if !have("valgrind") {
			p.lacks("counts", "valgrind", "valgrind")
			return nil
		}
		if err := p.count(); err != nil {
			return err
		}
		return module("tests/bench", env)(p)
	}
}

// count compares the counts, with the Go version that env selects.
func (p *prover) count(env ...string) error {
	if err := p.do(goCommand("tests/bench", "build", "-o", "../../build/bench", ".").with(env...)); err != nil {
		return err
	}
	return p.do(command{dir: "tests/bench", args: []string{"../../build/bench", "-gate"}}.with(env...))
}

func growth(p *prover) error {
	const base, now = frogpond + "/testdata/recorded/builtin.json", "build/growth.json"
	for _, c := range []command{
		goCommand("", "build", "-o", "build/frogpond", "./"+frogpond),
		goCommand("budget/cmd", "build", "-o", "../../build/upfront", "./upfront"),
		{args: []string{"build/frogpond", "-json", "-wad", "builtin", "-ticks", "350", "-report", now}},
		{args: []string{"build/upfront", "check", now, "--against", base, "--max-growth", "3%"}},
	} {
		if err := p.do(c); err != nil {
			return err
		}
	}
	return nil
}

// pages installs axe-core below build, where the tests put their screenshots.
func pages(p *prover) error {
	for tool, debian := range map[string]string{"npm": "npm", "chromium": "chromium"} {
		if !have(tool) {
			p.lacks("pages", tool, debian)
			return nil
		}
	}
	if err := os.MkdirAll("build/page", 0o755); err != nil {
		return err
	}
	for _, c := range []command{
		{args: []string{"cp", "tests/page/package.json", "tests/page/package-lock.json", "build/page/"}},
		{dir: "build/page", args: []string{"npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"}},
	} {
		if err := p.do(c); err != nil {
			return err
		}
	}
	return p.goTest("tests/page", []string{"UPFRONT_STEP=gate"}, false, limit, "-count=1", "./...")
}

// on calls do for a target, if its compiler and emulator are on this machine.
func on(t targets, name string, do func(p *prover, x target) error) func(p *prover) error {
	return func(p *prover) error {
		x, err := t.target(name)
		if err != nil {
			return err
		}
		if lacks := x.lacks(); lacks != "" {
			p.lacks(name, lacks, x.Debian[0])
			return nil
		}
		if emulator := x.run(0); len(emulator) > 0 && !have(emulator[0]) {
			p.lacks(name, emulator[0], "qemu-user-static")
			return nil
		}
		if err = x.prepare(); err != nil {
			return err
		}
		return do(p, x)
	}
}
