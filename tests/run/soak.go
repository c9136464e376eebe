package main

import (
	"slices"
	"strings"

	"github.com/upfront-mem/upfront/tests/step"
)

// nextGo selects the next release of Go, which inlines differently. The go command downloads it.
const nextGo = "GOTOOLCHAIN=go1.27.4"

// wadFolder has the files of Debian's package freedoom, and wads are the files.
const (
	wadFolder = "/usr/share/games/doom"
	wads      = wadFolder + "/freedoom1.wad," + wadFolder + "/freedoom2.wad"
)

func soakParts(t targets) []part {
	soak := []string{"UPFRONT_STEP=soak", "UPFRONT_TIME=1s"}
	list := []part{
		{"mutants", "faults put into the code, each found by its test", func(p *prover) error {
			return p.do(goCommand("", "run", "./tests/mutants"))
		}},
		{"static", "staticcheck of the files that each build leaves out", static},
		{"test", "every package's tests in their long form, in the release build", tests(soak, nil, all)},
	}
	for _, f := range flavours {
		list = append(list, part{f.name, "the same in this build", tests(soak, f.flags, all)})
	}
	return append(list,
		part{"model", "random programs for a minute in each build, compared with a model", model},
		part{"sweep", "every special line of Freedoom's maps, fired", sweep},
		part{"pages", "tests for arm64, some in full; platform's and budget's also with pages of 16 and 64 KiB",
			on(t, "linux-arm64", func(p *prover, x target) error {
				return p.emulated(x, x.Tests, x.Paged)
			})},
		part{"saves", "a saved game of Freedoom goes to arm64 and back, and is played again there",
			on(t, "linux-arm64", savesThere)},
		part{"targets", "the tests of every other target", func(p *prover) error { return p.emulateOthers(t) }},
		part{"windows", "under Wine: all of Freedoom's maps, and the library's tests in checked builds",
			windows(t.windows(), wineSoak)},
		part{"devices", "frogpond as each device has it", func(p *prover) error { return p.eachDevice(t, nil) }},
		part{"next", "format, vet, counts, the heart's, a full C heap's and upfront-vet's tests under the next Go",
			next},
		part{"fuzz", "each fuzz target for a minute", func(p *prover) error { return p.fuzz("1m", "") }},
		part{"hostile", "decoders of foreign input, fuzzed for ten minutes each", func(p *prover) error {
			return p.fuzz("10m",
				"Fuzz(Load|Compile|WAD|Apply|Image|Decompress|Read|Replay|Packets|Views|Client|Save|Record|Scores)")
		}},
		part{"clients", "wasm modules, SQLite, Lua and Arrow: all tests, in three builds", soakClients},
		part{"full", "SQLite and tree-sitter while C's malloc is full, 100 runs of each size",
			module("tests/full", soak)},
		part{"group", "processes of 1,000 plans in memory cgroups", module("tests/group", soak)},
		part{"others", "other people's programs in a budget, and other caches: their tests in full",
			others([]string{"UPFRONT_STEP=soak"})},
		part{"fleet", "servers of plans, placed by Kubernetes' scheduler, and created in its API server", kubernetes},
	)
}

// static runs staticcheck over all builds together: a function is unused only if no build uses it.
func static(p *prover) error {
	var lines strings.Builder
	lines.WriteString("release:\n")
	for _, f := range flavours {
		lines.WriteString(f.name + ": GOFLAGS=" + strings.Join(f.flags, " ") + "\n")
	}
	script := "printf '" + strings.ReplaceAll(lines.String(), "\n", `\n`) + "' | go run " + staticcheck +
		" -matrix ./..."
	return p.do(command{args: []string{"sh", "-c", script}})
}

func model(p *prover) error {
	for _, f := range slices.Concat([]flavour{{}}, flavours) {
		args := slices.Concat([]string{limit, "-count=1", "-run=^TestModel$"}, f.flags, []string{"./tests/model"})
		if err := p.goTest("", []string{"UPFRONT_STEP=check", "UPFRONT_TIME=1m"}, false, args...); err != nil {
			return err
		}
	}
	return nil
}

func sweep(p *prover) error {
	if err := p.do(goCommand("", "build", "-o", "build/frogpond", "./"+frogpond)); err != nil {
		return err
	}
	return p.do(command{args: []string{"build/frogpond", "-wad", wads, "-sweep", "-ticks", "0"}})
}

func savesThere(p *prover, x target) error {
	if err := p.saves(x, wads, "E1M1", "E2M2", "E4M4", "MAP07", "MAP20", "MAP32"); err != nil {
		return err
	}
	return p.emulate(x, step.Soak, 0, []string{frogpond}, "-run=^TestRollback$/./^2$")
}

// emulateOthers runs the tests of all targets but linux-arm64.
func (p *prover) emulateOthers(t targets) error {
	for _, x := range t.Targets {
		if x.Name == "linux-arm64" {
			continue
		}
		if lacks := x.lacks(); lacks != "" {
			p.lacks(x.Name, lacks, strings.Join(x.Debian, ", "))
			continue
		}
		if err := x.prepare(); err != nil {
			return err
		}
		if err := p.emulated(x, x.Tests, x.Paged); err != nil {
			return err
		}
	}
	return nil
}

func next(p *prover) error {
	const format = `list=$("$(go env GOROOT)/bin/gofmt" -l .) && echo "$list" && test -z "$list"`
	if err := p.do(command{args: []string{"sh", "-c", format}}.with(nextGo)); err != nil {
		return err
	}
	if err := p.vet(".", tags("."), nextGo); err != nil {
		return err
	}
	env := []string{nextGo, "UPFRONT_STEP=check"}
	if err := p.goTest("", env, false, limit, "./arena", "./scope/...", "./budget/...",
		"./tests/conformance"); err != nil {
		return err
	}
	if err := module("tests/full", env)(p); err != nil {
		return err
	}
	if err := p.goTest("budget/cmd", env, false, limit, "./upfront-vet/..."); err != nil {
		return err
	}
	if !have("valgrind") {
		p.lacks("next", "valgrind", "valgrind")
		return nil
	}
	return p.count(nextGo)
}

func soakClients(p *prover) error {
	if err := p.do(goCommand("", "run", "./tests/clients").with("UPFRONT_STEP=soak")); err != nil {
		return err
	}
	for _, dir := range []string{"arena/with/lua", "arena/with/sqlite", "scope/with/arrow", "scope/with/wazero",
		"tests/frogpond/mods"} {
		for _, flag := range []string{"-race", "-tags=checked"} {
			if err := p.goTest(dir, []string{"UPFRONT_STEP=check"}, false, limit, flag, "./..."); err != nil {
				return err
			}
		}
	}
	return nil
}

// kubernetes lints, runs and tests the module fleet.
func kubernetes(p *prover) error {
	if err := p.lint([]string{fleet}, true); err != nil {
		return err
	}
	if err := p.do(goCommand(fleet, "run", ".")); err != nil {
		return err
	}
	return p.goTest(fleet, []string{"UPFRONT_STEP=soak"}, false, limit, "./...")
}
