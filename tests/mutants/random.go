package main

import (
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// folders returns the folders in which -random puts faults: those of the library.
func folders(root string) (all []string, err error) {
	err = filepath.WalkDir(root, func(dir string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() || dir == root {
			return err
		}
		name, err := filepath.Rel(root, dir)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		if slices.Contains([]string{"build", "cross", "tests"}, name) || d.Name() == "testdata" ||
			strings.HasPrefix(d.Name(), ".") {
			return filepath.SkipDir
		}
		all = append(all, name)
		return nil
	})
	return all, err
}

// since returns the lines of each file, from 1, that changed since a commit.
func since(root, commit string) (map[string]map[int]bool, error) {
	cmd := exec.Command("git", "diff", "--no-ext-diff", "--no-color", "--no-prefix", "--find-renames", "-U0",
		commit, "--")
	cmd.Dir = root
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("git diff %s: %w", commit, err)
	}
	all, file := map[string]map[int]bool{}, ""
	for line := range strings.Lines(string(text)) {
		if name, is := strings.CutPrefix(line, "+++ "); is {
			file = strings.TrimSpace(name)
			all[file] = map[int]bool{}
		} else if m := hunk.FindStringSubmatch(line); m != nil {
			first, _ := strconv.Atoi(m[1])
			count := 1
			if m[2] != "" {
				count, _ = strconv.Atoi(m[2])
			}
			for i := range count {
				all[file][first+i] = true
			}
		}
	}
	return all, nil
}

var hunk = regexp.MustCompile(`^@@ -[0-9,]+ \+(\d+)(?:,(\d+))? @@`)

// fault is a possible fault of a file: the text from one byte to another becomes a new one.
type fault struct {
	from, to  int
	text, is  string // is describes the new text
	inOneLine int    // the line of the first byte, from 1
}

// random prints n faults that a seed chooses, as mutants, of the files that match. If commit isn't
// empty, it takes only lines that changed since. It divides the lines that can have faults into n
// equal parts, and takes one line of each; each fault of a line is equally likely. If the fault
// doesn't compile, random tries the next line.
func random(w io.Writer, root, match, commit string, n int, seed uint64) error {
	matches, err := regexp.Compile(match)
	if err != nil {
		return err
	}
	var changed map[string]map[int]bool
	if commit != "" {
		if changed, err = since(root, commit); err != nil {
			return err
		}
	}
	folders, err := folders(root)
	if err != nil {
		return err
	}
	type line struct {
		file   *source
		faults []fault
	}
	var row []line
	for _, folder := range folders {
		files, err := sources(root, folder)
		if err != nil {
			return err
		}
		for _, s := range files {
			if !matches.MatchString(s.name) {
				continue
			}
			if commit != "" {
				s.faults = slices.DeleteFunc(s.faults, func(f fault) bool { return !changed[s.name][f.inOneLine] })
			}
			for i, f := range s.faults {
				if i == 0 || f.inOneLine != s.faults[i-1].inOneLine {
					row = append(row, line{file: s})
				}
				last := &row[len(row)-1]
				last.faults = append(last.faults, f)
			}
		}
	}
	if n < 1 || n > len(row) {
		return fmt.Errorf("%d faults: want 1 to %d, the lines that can have one", n, len(row))
	}
	r := rand.New(rand.NewPCG(seed, 0))
	fmt.Fprintf(w, "Seed %d: one fault in each %d lines of %d.\n", seed, len(row)/n, len(row))
	for i := range n {
		from, to := i*len(row)/n, (i+1)*len(row)/n
		begin := r.IntN(to - from)
		if err := func() error {
			for j := range to - from {
				l := row[from+(begin+j)%(to-from)]
				for _, k := range r.Perm(len(l.faults)) {
					f := l.faults[k]
					if changed := l.file.with(f); l.file.compiles(changed) {
						l.file.print(w, seed, i, f, changed)
						return nil
					}
				}
			}
			return fmt.Errorf("nothing compiles from %s:%d to %s:%d", row[from].file.name,
				row[from].faults[0].inOneLine, row[to-1].file.name, row[to-1].faults[0].inOneLine)
		}(); err != nil {
			return err
		}
	}
	return nil
}

// source is a file, with its faults by lines.
type source struct {
	name     string // from the root, with slashes
	text     string
	faults   []fault
	compiles func(text string) bool
}

// sources reads the files of a folder that some build of make check compiles.
func sources(root, folder string) ([]*source, error) {
	all, err := sourcesOfGo(root, folder)
	if err != nil {
		return nil, err
	}
	ofC, err := sourcesOfC(root, folder)
	if err != nil {
		return nil, err
	}
	all = append(all, ofC...)
	for _, s := range all {
		for i := range s.faults {
			s.faults[i].inOneLine = 1 + strings.Count(s.text[:s.faults[i].from], "\n")
		}
		slices.SortStableFunc(s.faults, func(a, b fault) int { return a.from - b.from })
		slices.SortStableFunc(s.faults, func(a, b fault) int { return a.inOneLine - b.inOneLine })
	}
	slices.SortFunc(all, func(a, b *source) int { return strings.Compare(a.name, b.name) })
	return all, nil
}

func readSource(root, folder, base string) (*source, error) {
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(folder), base))
	return &source{name: folder + "/" + base, text: string(text)}, err
}

// with returns the text with a fault, without the lines that became blank.
func (s *source) with(f fault) string {
	before, after := s.text[:f.from], s.text[f.to:]
	begin := strings.LastIndexByte(before, '\n') + 1
	rest, next, _ := strings.Cut(after, "\n")
	if strings.TrimSpace(before[begin:]+f.text+rest) == "" {
		return before[:begin] + next
	}
	return before + f.text + after
}

// print prints a fault as a mutant without a test: the lines that differ, and as many lines around
// them as make the old text unique in the file.
func (s *source) print(w io.Writer, seed uint64, number int, f fault, changed string) {
	old, new := strings.SplitAfter(s.text, "\n"), strings.SplitAfter(changed, "\n")
	from := 0
	for from < min(len(old), len(new)) && old[from] == new[from] {
		from++
	}
	behind := 0
	for behind < min(len(old), len(new))-from && old[len(old)-1-behind] == new[len(new)-1-behind] {
		behind++
	}
	text := func() string { return strings.Join(old[from:len(old)-behind], "") }
	stands := func() (n int) {
		for at := range old {
			if strings.HasPrefix(strings.Join(old[at:], ""), text()) {
				n++
			}
		}
		return n
	}
	for down := true; strings.TrimSpace(text()) == "" || stands() > 1 || old[len(old)-behind-1] == "\n"; down = !down {
		if down && behind > 1 || from == 0 {
			behind--
		} else {
			from--
		}
	}
	base := strings.NewReplacer("_", "-", ".", "-").Replace(strings.ToLower(filepath.Base(s.name)))
	fmt.Fprintf(w, "\n=== random-%d-%d-%s\nfault: %s: %s.\ntest: %s Test\n--- old %s\n%s--- new\n%s",
		seed, number, base, strings.TrimSuffix(s.name, filepath.Ext(s.name)), f.is,
		filepath.ToSlash(filepath.Dir(s.name)), s.name, text(), strings.Join(new[from:len(new)-behind], ""))
}
