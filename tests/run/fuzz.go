package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

var fuzzTarget = regexp.MustCompile(`(?m)^func (Fuzz\w+)\(`)

// fuzzTargets returns the names of all fuzz targets of the module, by package.
func fuzzTargets() (found map[string][]string, err error) {
	found = map[string][]string{}
	err = filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != "." && (path == "build" || d.Name() == "testdata" || d.Name() == ".git" ||
			hasModule(path)) {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		dir := filepath.ToSlash(filepath.Dir(path))
		for _, name := range fuzzTarget.FindAllStringSubmatch(string(text), -1) {
			found[dir] = append(found[dir], name[1])
		}
		return nil
	})
	return found, err
}

// fuzz runs the fuzz targets that match a pattern. Each runs for a time, such as 10s, or a number
// of executions, such as 1000x.
func (p *prover) fuzz(time, pattern string) error {
	only, err := regexp.Compile(pattern)
	if err != nil {
		return err
	}
	all, err := fuzzTargets()
	if err != nil {
		return err
	}
	cache, err := filepath.Abs("build/fuzz")
	if err != nil {
		return err
	}
	count := 0
	for _, dir := range sortedKeys(all) {
		program := ""
		for _, name := range all[dir] {
			if !only.MatchString(name) {
				continue
			}
			if program == "" {
				program = filepath.Join(cache, strings.ReplaceAll(dir, "/", "-")+".test")
				if err = p.do(goCommand(dir, "test", "-c", "-fuzz=.", "-o", program, ".")); err != nil {
					return err
				}
			}
			if err = p.fuzzOne(dir, program, name, time, filepath.Join(cache, dir)); err != nil {
				return err
			}
			count++
		}
	}
	if count == 0 {
		return fmt.Errorf("no fuzz target matches %q", pattern)
	}
	return nil
}

// fuzzOne runs a fuzz target. If the fuzzer fails at the end of its time with "context deadline
// exceeded" (golang/go#75804), fuzzOne runs it again, up to twice.
func (p *prover) fuzzOne(dir, program, name, time, cache string) (err error) {
	for range 3 {
		var out strings.Builder
		err = p.start(command{dir: dir, args: []string{program, "-test.run=^$", "-test.fuzz=^" + name + "$",
			"-test.fuzztime=" + time, "-test.fuzzcachedir=" + cache}}, &out, &out)
		fmt.Fprint(p.log, out.String())
		if err == nil {
			return nil
		}
		if !strings.Contains(out.String(), "context deadline exceeded") ||
			strings.Contains(out.String(), "Failing input") {
			p.say("%s", out.String())
			return err
		}
	}
	return err
}
