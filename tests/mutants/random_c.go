package main

import (
	"errors"
	"fmt"
	"go/build"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// buildsOfC are the builds of the core that make check compiles, the plain one, and that of C's
// malloc without Go.
var buildsOfC = [][]string{{}, {"-DUPFRONT_CHECKED"}, {"-fsanitize=address"},
	{"-U__SIZEOF_INT128__"}, {"-DUPFRONT_MALLOC_PRELOAD"}}

// sourcesOfC reads the C files of a folder.
func sourcesOfC(root, folder string) (all []*source, err error) {
	dir := filepath.Join(root, filepath.FromSlash(folder))
	files, err := filepath.Glob(filepath.Join(dir, "*.[ch]"))
	if err != nil || files == nil {
		return nil, err
	}
	flags, err := flagsOfC(dir)
	if err != nil {
		return nil, err
	}
	compiled, err := compiledLines(dir, flags)
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		s, err := readSource(root, folder, filepath.Base(file))
		if err != nil {
			return nil, err
		}
		s.compiles = func(text string) bool { return compilesC(dir, filepath.Base(file), text, flags) }
		for _, f := range faultsOfC(s.text) {
			if compiled[filepath.Base(file)][1+strings.Count(s.text[:f.from], "\n")] {
				s.faults = append(s.faults, f)
			}
		}
		all = append(all, s)
	}
	return all, nil
}

// flagsOfC returns the flags that cgo has for a folder's C files.
func flagsOfC(dir string) ([]string, error) {
	dir, err := filepath.Abs(dir) // for ${SRCDIR}
	if err != nil {
		return nil, err
	}
	p, err := build.ImportDir(dir, 0)
	if none := (*build.NoGoError)(nil); errors.As(err, &none) {
		return nil, nil
	}
	return p.CgoCFLAGS, err
}

var lineMarker = regexp.MustCompile(`^# (\d+) "(.*)"`)

// compiledLines returns the lines of each file that a build compiles.
func compiledLines(dir string, more []string) (map[string]map[int]bool, error) {
	all := map[string]map[int]bool{}
	for _, flags := range buildsOfC {
		files, err := filepath.Glob(filepath.Join(dir, "*.c"))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			if text, err := os.ReadFile(file); err != nil {
				return nil, err
			} else if strings.Contains(string(text), `"_cgo_export.h"`) { // which cgo generates
				continue
			}
			output, err := exec.Command("cc", slices.Concat(flags, more, []string{"-std=c11", "-E", file})...).Output()
			if err != nil {
				return nil, fmt.Errorf("cc -E %s: %w", file, err)
			}
			name, line := "", 0
			for text := range strings.Lines(string(output)) {
				if m := lineMarker.FindStringSubmatch(text); m != nil {
					name = filepath.Base(m[2])
					line, _ = strconv.Atoi(m[1])
					continue
				}
				if strings.TrimSpace(text) != "" {
					if all[name] == nil {
						all[name] = map[int]bool{}
					}
					all[name][line] = true
				}
				line++
			}
		}
	}
	return all, nil
}

// compilesC reports whether the core compiles in each build with another text of one file.
func compilesC(dir, changed, text string, more []string) bool {
	scratch, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return false
	}
	defer os.RemoveAll(scratch)
	core := filepath.Join(scratch, "core")
	if os.CopyFS(core, os.DirFS(dir)) != nil || os.WriteFile(filepath.Join(core, changed), []byte(text), 0o644) != nil {
		return false
	}
	files, err := filepath.Glob(filepath.Join(core, "*.c"))
	if err != nil {
		return false
	}
	for _, flags := range buildsOfC {
		args := slices.Concat(flags, more, []string{"-std=c11", "-fsyntax-only"}, files)
		if exec.Command("cc", args...).Run() != nil {
			return false
		}
	}
	return true
}

var (
	notCode     = regexp.MustCompile(`(?s)/\*.*?\*/|//[^\n]*|"(\\.|[^"\\\n])*"|'(\\.|[^'\\\n])*'|(?m)^[ \t]*#([^\n]*\\\n)*[^\n]*`)
	operatorOfC = regexp.MustCompile(`<<=?|>>=?|->|<=|>=|<|>|&&|\|\|`)
	numberOfC   = regexp.MustCompile(`\b(0[xX][0-9a-fA-F]+|[0-9]+)\b`)
	ifOfC       = regexp.MustCompile(`\bif \(`)
	elseOfC     = regexp.MustCompile(`\} (else \{)`)
	functionOfC = regexp.MustCompile(`(?m)^([a-z][^\n;=]*)\(([^\n;]|\n[^\n{}]*,?)*?\) \{`)
	callOfC     = regexp.MustCompile(`(?m)^[ \t]+(\*?[a-z_][\w.\->]*\([^\n]*\);)`)
	assignOfC   = regexp.MustCompile(`(?m)^[ \t]+(\*?[a-z_][\w.\->]*(\[[^\n=]*\])? [-+*/%&|^]?= [^\n]*;|[a-z_][\w.\->]*(\+\+|--);)`)
)

// faultsOfC lists the faults that a file can have: its text is matched, not parsed.
func faultsOfC(text string) (all []fault) {
	// Comments and strings become blank.
	code := notCode.ReplaceAllStringFunc(text, func(s string) string {
		return strings.Map(func(r rune) rune {
			if r == '\n' {
				return r
			}
			return ' '
		}, strings.Map(func(r rune) rune { // one byte for each byte
			if r > 127 {
				return '?'
			}
			return r
		}, s))
	})
	if len(code) != len(text) {
		return nil
	}
	add := func(from, to int, text, is string) { all = append(all, fault{from: from, to: to, text: text, is: is}) }
	// closed returns the end of the bracket that opens before at.
	closed := func(at int, open, end byte) int {
		for depth := 1; at < len(code); at++ {
			switch code[at] {
			case open:
				depth++
			case end:
				if depth--; depth == 0 {
					return at
				}
			}
		}
		return at
	}
	others := map[string]string{"<": "<=", "<=": "<", ">": ">=", ">=": ">", "&&": "||", "||": "&&"}
	for _, m := range operatorOfC.FindAllStringIndex(code, -1) {
		is := code[m[0]:m[1]]
		if other := others[is]; other != "" {
			add(m[0], m[1], other, is+" becomes "+other)
		}
	}
	for _, m := range numberOfC.FindAllStringIndex(code, -1) {
		if number, err := strconv.ParseUint(code[m[0]:m[1]], 0, 62); err == nil {
			add(m[0], m[1], strconv.FormatUint(number+1, 10), "a number is one more")
		}
	}
	for _, m := range ifOfC.FindAllStringIndex(code, -1) {
		end := closed(m[1], '(', ')')
		add(m[1], end, "!("+text[m[1]:end]+")", "a condition is negated")
	}
	for _, m := range elseOfC.FindAllStringSubmatchIndex(code, -1) {
		add(m[2], closed(m[3], '{', '}')+1, "", "an else is dropped")
	}
	for _, m := range callOfC.FindAllStringSubmatchIndex(code, -1) {
		add(m[2], m[3], ";", "a call is dropped")
	}
	for _, m := range assignOfC.FindAllStringSubmatchIndex(code, -1) {
		add(m[2], m[3], ";", "an assignment is dropped")
	}
	for _, m := range functionOfC.FindAllStringSubmatchIndex(code, -1) {
		back := "return 0;"
		if strings.Contains(code[m[2]:m[3]], "void ") && !strings.Contains(code[m[2]:m[3]], "*") {
			back = "return;"
		}
		end := ""
		if text[m[1]] != '\n' {
			end = "\n   "
		}
		add(m[1], m[1], "\n    "+back+end, "a function returns early")
	}
	return all
}
