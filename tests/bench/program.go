package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// programs compiles the programs of works H, M and T, each once, into a folder that end removes.
type programs struct {
	folder string
	built  map[string]string
}

func (p *programs) end() {
	if p.folder != "" {
		_ = os.RemoveAll(p.folder)
	}
}

// compile compiles a C program with the core.
func (p *programs) compile(name string, line ...string) (program string, err error) {
	core, err := filepath.Glob("../../arena_c/*.c")
	if err != nil || len(core) == 0 {
		return "", errors.Join(errors.New("no ../../arena_c: run this in tests/bench"), err)
	}
	return p.build(name, []string{"gcc"}, slices.Concat([]string{"-std=gnu11", "-O2", "-DNDEBUG", "-I../../arena_c"},
		core, line)...)
}

// build runs a compiler with -o and the name of a program, unless the program was built before.
func (p *programs) build(name string, compiler []string, line ...string) (program string, err error) {
	return p.once(name, func(program string) []string {
		return slices.Concat(compiler, []string{"-o", program}, line)
	})
}

// install returns a file that make install makes, by its path below PREFIX.
func (p *programs) install(name string) (file string, err error) {
	return p.once(name, func(file string) []string {
		prefix := strings.TrimSuffix(file, "/"+name)
		return []string{"make", "-s", "-C", "../..", "install", "PREFIX=" + prefix, "LIB=" + prefix + "/objects"}
	})
}

// once runs the command that makes a file of the folder, unless it ran before.
func (p *programs) once(name string, command func(file string) []string) (file string, err error) {
	if file = p.built[name]; file != "" {
		return file, nil
	}
	if p.folder == "" {
		if p.folder, err = os.MkdirTemp("", "bench"); err != nil {
			return "", err
		}
		p.built = map[string]string{}
	}
	file = filepath.Join(p.folder, name)
	line := command(file)
	if out, err := exec.Command(line[0], line[1:]...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w: %s", strings.Join(line, " "), err, out)
	}
	p.built[name] = file
	return file, nil
}

// fields runs a program and returns the fields of its lines.
func fields(program string, args ...string) (lines [][]string, err error) {
	c := exec.Command(program, args...)
	c.Stderr = os.Stderr
	// jemalloc, opened in a running program, needs room for its thread-local data.
	c.Env = append(os.Environ(), "GLIBC_TUNABLES=glibc.rtld.optional_static_tls=16384")
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", filepath.Base(program), strings.Join(args, " "), err)
	}
	for line := range strings.Lines(string(out)) {
		lines = append(lines, strings.Split(strings.TrimSuffix(line, "\n"), "\t"))
	}
	return lines, nil
}

// whoTook returns series from lines of a contestant and a figure, one line a round.
func whoTook(work, unit string, lines [][]string) (list []series, err error) {
	for _, line := range lines {
		if len(line) != 2 {
			return nil, fmt.Errorf("%s: %q", work, line)
		}
		value, err := strconv.ParseFloat(line[1], 64)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", work, err)
		}
		at := slices.IndexFunc(list, func(s series) bool { return s.who == line[0] })
		if at < 0 {
			at, list = len(list), append(list, newSeries(work, unit, line[0]))
		}
		list[at].values = append(list[at].values, value)
	}
	return list, nil
}

// preloads are the libraries that replace the malloc of a process, and their packages, by
// contestant. That of upfront is built.
var preloads = map[string]struct{ file, debian string }{
	jemalloc: {"libjemalloc.so.2", "libjemalloc2"},
	mimalloc: {"libmimalloc.so", "libmimalloc-dev"},
}

// preload returns the variables that make a contestant the malloc of a process; none for glibc.
func (h *harness) preload(who string) (env []string, err error) {
	if who == library {
		file, err := h.programs.install("lib/libupfront-malloc.so")
		return []string{"LD_PRELOAD=" + file, "UPFRONT_C_HEAP=256MiB"}, err
	}
	l, found := preloads[who]
	if !found {
		return nil, nil
	}
	env = []string{"LD_PRELOAD=" + l.file}
	c := exec.Command("true")
	c.Env = append(os.Environ(), env...)
	if said, err := c.CombinedOutput(); err != nil || len(said) > 0 { // the loader's warning
		return nil, missing(l.debian)
	}
	return env, nil
}
