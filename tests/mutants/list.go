package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/upfront-mem/upfront/tests/step"
)

// mutant is a fixed fault that can be restored.
type mutant struct {
	name, fault string
	at          string // the file and line of its section
	places      []place
	killer      killer
}

// place is a text of whole lines that stands once in a file, and the text that replaces it.
type place struct{ file, old, new string }

// killer names the tests that should fail.
type killer struct {
	folder string   // of the package
	tests  []string // functions; of C if folder is empty
	flags  []string // of go test, or of the C compiler
	step   string   // UPFRONT_STEP
	later  string   // GOTOOLCHAIN, for files that need a later Go
	hangs  time.Duration
}

// build identifies a test binary: killers of one build share it in their control.
func (k killer) build() string {
	text := strings.Join(append([]string{k.folder}, k.flags...), " ")
	if k.later != "" {
		text += " by " + k.later
	}
	return text
}

// String returns the killer as a command line.
func (k killer) String() string {
	text := "go test " + k.build() + " -run '" + k.pattern() + "'"
	if k.folder == "" {
		text = "tests/c " + strings.Join(append(k.flags, k.tests...), " ")
	}
	if k.step != "" {
		text = step.Variable + "=" + k.step + " " + text
	}
	return text
}

func (k killer) pattern() string { return "^(" + strings.Join(k.tests, "|") + ")$" }

// readAll reads all mutants of the tree at root.
func readAll(root string) ([]*mutant, error) {
	files, err := filepath.Glob(filepath.Join(root, "tests/mutants/testdata/*.txt"))
	if err != nil {
		return nil, err
	}
	if files == nil {
		return nil, errors.New("tests/mutants/testdata isn't here: run it in the root of the repository")
	}
	var all []*mutant
	at := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		ms, err := parse(filepath.Base(file), text)
		if err != nil {
			return nil, err
		}
		for _, m := range ms {
			if other := at[m.name]; other != "" {
				return nil, fmt.Errorf("%s: %s has the name %s, too", m.at, other, m.name)
			}
			at[m.name] = m.at
		}
		all = append(all, ms...)
	}
	return all, nil
}

var (
	nameForm = regexp.MustCompile(`^[a-z0-9-]+$`)
	testForm = regexp.MustCompile(`^(Test|Fuzz|Example)\w*$`)
	cForm    = regexp.MustCompile(`^test_\w+$`)
)

// parse reads a file of mutants. A section looks like this:
//
//	=== guards-left-out
//	fault: e22aad6: a replay left out the guards of a plan of a fixed size
//	test: budget/record TestReplayGuards TestReplayRest
//	flags: -tags checked
//	--- old budget/record/play.go
//	one or more whole lines
//	--- new
//	the lines that replace them, or none
//
// The keys are:
//
//   - fault: the commit that fixed the fault, and a description. More such lines continue it.
//   - test: the folder of a package and its test functions. One of them has to fail.
//   - c: in place of test, functions of tests/c.
//   - flags: of go test, or of the C compiler. It is optional, as the following are.
//   - step: UPFRONT_STEP of the killer, check or soak.
//   - go: GOTOOLCHAIN of the killer, for a file that needs a later Go.
//   - hangs: a duration after which a killer that still runs counts as failed. Without this key, a
//     killer that reaches its limit doesn't count.
//
// A mutant of several places has several pairs of old and new. Blank lines at the end of a text
// are dropped, and so is the text before the first section.
func parse(file string, text []byte) ([]*mutant, error) {
	var all []*mutant
	var m *mutant
	var into *string // the text that is being read
	line := 0
	fail := func(format string, args ...any) error {
		return fmt.Errorf("%s:%d: %s", file, line, fmt.Sprintf(format, args...))
	}
	seen := map[string]bool{}
	finish := func() error {
		if m == nil {
			return nil
		}
		for i := range m.places {
			p := &m.places[i]
			p.old, p.new = trim(p.old), trim(p.new)
			if p.old == "" {
				return fmt.Errorf("%s: %s: an old text is empty", m.at, m.name)
			}
			if p.old == p.new {
				return fmt.Errorf("%s: %s: old and new are the same", m.at, m.name)
			}
		}
		switch {
		case !seen["fault"]:
			return fmt.Errorf("%s: %s: no fault", m.at, m.name)
		case !seen["test"] && !seen["c"]:
			return fmt.Errorf("%s: %s: no test, and no c", m.at, m.name)
		case len(m.places) == 0 || !seen["--- new"]:
			return fmt.Errorf("%s: %s: no --- old, or one without its --- new", m.at, m.name)
		}
		return nil
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		line++
		got := lines.Text()
		switch {
		case strings.HasPrefix(got, "=== "):
			if err := finish(); err != nil {
				return nil, err
			}
			m = &mutant{name: got[len("=== "):], at: fmt.Sprintf("%s:%d", file, line)}
			if !nameForm.MatchString(m.name) {
				return nil, fail("name %q: want small letters, digits and -", m.name)
			}
			all = append(all, m)
			into = nil
			clear(seen)
		case m == nil:
		case strings.HasPrefix(got, "--- old "):
			if len(m.places) > 0 && !seen["--- new"] {
				return nil, fail("--- old: the one before it has no --- new")
			}
			m.places = append(m.places, place{file: got[len("--- old "):]})
			into = &m.places[len(m.places)-1].old
			seen["--- new"] = false
		case got == "--- new":
			if len(m.places) == 0 || seen[got] {
				return nil, fail("--- new: no --- old before it")
			}
			into = &m.places[len(m.places)-1].new
			seen[got] = true
		case strings.HasPrefix(got, "--- "):
			return nil, fail("%q: want --- old FILE, or --- new", got)
		case into != nil:
			*into += got + "\n"
		default:
			key, value, _ := strings.Cut(got, ": ")
			if seen[key] && key != "fault" {
				return nil, fail("%s: a second one", key)
			}
			seen[key] = true
			if err := m.set(key, value); err != nil {
				return nil, fail("%s: %v", key, err)
			}
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return all, finish()
}

// set sets the value of a key.
func (m *mutant) set(key, value string) (err error) {
	words := strings.Fields(value)
	if len(words) == 0 {
		return errors.New("no value")
	}
	k := &m.killer
	switch key {
	case "fault":
		m.fault = strings.TrimSpace(m.fault + " " + value)
	case "test", "c":
		form := cForm
		if key == "test" {
			form, k.folder, words = testForm, words[0], words[1:]
		}
		if k.tests != nil {
			return errors.New("a test, and c")
		}
		if len(words) == 0 {
			return errors.New("no test function")
		}
		for _, w := range words {
			if !form.MatchString(w) {
				return fmt.Errorf("%q isn't a test function", w)
			}
		}
		k.tests = words
	case "flags":
		k.flags = words
	case "step":
		if k.step = value; !slices.Contains([]string{"check", "soak"}, value) {
			return fmt.Errorf("%q: want check or soak", value)
		}
	case "go":
		k.later = value
	case "hangs":
		if k.hangs, err = time.ParseDuration(value); err == nil && k.hangs < time.Second {
			err = fmt.Errorf("%s: want a second at least", value)
		}
	default:
		return errors.New("want fault, test, c, flags, step, go, hangs, --- old or --- new")
	}
	return err
}

// trim drops blank lines at the end of a text.
func trim(text string) string {
	if text = strings.TrimRight(text, "\n"); text != "" {
		text += "\n"
	}
	return text
}

// apply returns the files of a mutant with its replacements, by their paths in the tree at root.
func (m *mutant) apply(root string) (map[string]string, error) {
	files := map[string]string{}
	for _, p := range m.places {
		text, read := files[p.file]
		if !read {
			bytes, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(p.file)))
			if err != nil {
				return nil, fmt.Errorf("%s: %s: %w", m.at, m.name, err)
			}
			text = string(bytes)
		}
		at := -1
		count := 0
		for i := 0; i < len(text); i += 1 + strings.IndexByte(text[i:]+"\n", '\n') {
			if strings.HasPrefix(text[i:], p.old) {
				at, count = i, count+1
			}
		}
		if count != 1 {
			return nil, fmt.Errorf("%s: %s: its old text stands %d times in %s, instead of once:\n%s",
				m.at, m.name, count, p.file, p.old)
		}
		files[p.file] = text[:at] + p.new + text[at+len(p.old):]
	}
	return files, nil
}
