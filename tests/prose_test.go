//go:build !race && !asan && !checked && !upfront_cgo

package tests

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var prose = flag.String("prose", "", "TestProse looks at the files below this folder alone")

// A passage is one line of prose: of a page, a comment or a message.
type passage struct {
	kind string // "page", "comment" or "message"
	line int
	text string // without the marks of a comment, and without code
	wide bool   // whether its line in the file takes more than 100 columns, with tabs of 4
}

// vague are words that stand where a noun should, each with the words that say it better.
var vague = []struct {
	words   *regexp.Regexp
	instead string
}{
	{wordsOf("what|who|whom|whoever|nobody|somebody|whatever|whichever"),
		"the noun: the caller, the scope, the object, the bytes, the cost"},
	{wordsOf("things?"), "the noun: the object, the block, the value"},
	{wordsOf("lies?|lain"), "is, is stored, starts"},
	{wordsOf("tells|told"), "reports, says"},
	{wordsOf("(is|are|was|were) given"), "returns, is allocated"},
	{wordsOf("meets|met"), "gets, finds, reaches"},
	{wordsOf("of which|has the right to"), "a sentence of its own; may"},
	{wordsOf("likewise|amid|anew|beside|nought"), "also, in, again, next to, 0"},
}

func wordsOf(list string) *regexp.Regexp { return regexp.MustCompile(`(?i)\b(` + list + `)\b`) }

// code is text that isn't prose, and is left out of a passage.
var code = regexp.MustCompile("`[^`]*`" + `|"[^"]*"|\]\([^)]*\)|<[^>]*>|https?://\S+`)

// directive is a comment that a program reads, the last kind for tests/race.
var directive = regexp.MustCompile(`^//(go:|export |line |lint:|nolint|extern )|^// want |^#!|^// \S+/\S+ (first|second|both)$`)

// commentOfC is a comment of C, or a literal, which may hold the marks of one.
var commentOfC = regexp.MustCompile(`(?s)//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'`)

// columns returns the width of a line, with tabs of 4.
func columns(line string) int { return utf8.RuneCountInString(line) + 3*strings.Count(line, "\t") }

// passages returns the prose of a file, by its extension.
func passages(t *testing.T, path, text string) (found []passage) {
	t.Helper()
	lines := strings.Split(text, "\n")
	wide := func(line int) bool { return columns(lines[line-1]) > 100 }
	add := func(kind string, line int, text string) {
		if directive.MatchString(strings.TrimSpace(text)) {
			return
		}
		for i, text := range strings.Split(text, "\n") {
			text = strings.TrimSuffix(strings.TrimLeft(text, "/*# "), "*/")
			if strings.HasPrefix(text, "\t") {
				text = "" // code in the comment of a package
			}
			found = append(found, passage{kind, line + i, code.ReplaceAllString(text, ""), kind != "message" &&
				wide(line+i)})
		}
	}
	ofC := func(first int, text string) {
		for _, at := range commentOfC.FindAllStringIndex(text, -1) {
			line := first + strings.Count(text[:at[0]], "\n")
			if text[at[0]] == '/' {
				add("comment", line, text[at[0]:at[1]])
			} else if strings.Count(text[at[0]:at[1]], " ") > 1 {
				add("message", line, text[at[0]+1:at[1]-1])
			}
		}
	}
	switch filepath.Ext(path) {
	case ".go":
		files := token.NewFileSet()
		file := parse(t, files, path, text, parser.ParseComments|parser.SkipObjectResolution)
		preamble := map[*ast.CommentGroup]bool{}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GenDecl:
				if spec, ok := n.Specs[0].(*ast.ImportSpec); ok && spec.Path.Value == `"C"` {
					preamble[n.Doc] = true
				}
			case *ast.BasicLit:
				if said, err := strconv.Unquote(n.Value); err == nil && strings.Count(said, " ") > 1 &&
					!strings.HasSuffix(path, "_test.go") {
					add("message", files.Position(n.Pos()).Line, said)
				}
			}
			return true
		})
		for _, group := range file.Comments {
			if preamble[group] {
				c := text[group.Pos()-1 : group.End()-1]
				if inner, found := strings.CutPrefix(c, "/*"); found {
					c = strings.TrimSuffix(inner, "*/")
				} else {
					c = regexp.MustCompile(`(?m)^//`).ReplaceAllString(c, "")
				}
				ofC(files.Position(group.Pos()).Line, c)
				continue
			}
			for _, comment := range group.List {
				said := strings.ToLower(strings.TrimSpace(strings.TrimPrefix(comment.Text, "//")))
				if strings.HasPrefix(said, "output:") || strings.HasPrefix(said, "unordered output:") {
					break
				}
				add("comment", files.Position(comment.Pos()).Line, comment.Text)
			}
		}
	case ".c", ".h":
		ofC(1, text)
	case ".md":
		fenced := false
		for i, line := range lines {
			fence := strings.HasPrefix(line, "```")
			fenced = fenced != fence
			if fenced || fence || strings.HasPrefix(line, "    ") {
				continue
			}
			found = append(found, passage{"page", i + 1, code.ReplaceAllString(line, ""), wide(i+1) && line[0] != '|'})
		}
	default: // a script's comments
		for i, line := range lines {
			if strings.HasPrefix(strings.TrimSpace(line), "#") {
				add("comment", i+1, line)
			}
		}
	}
	return found
}

// writings visits each file that has prose, except those that others wrote and those that programs
// read.
func writings(t *testing.T, visit func(path, text string)) {
	t.Helper()
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "build" || d.Name() == "testdata" || d.Name() == ".git" ||
			d.Name() == "third_party") {
			return filepath.SkipDir
		}
		switch filepath.Ext(path) {
		case ".go", ".c", ".h", ".md", ".sh", ".mk", ".yml", "":
			if d.IsDir() || filepath.Ext(path) == "" && d.Name() != "Makefile" {
				return nil
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			visit(strings.TrimPrefix(path, "../"), string(text))
		}
		return nil
	})
	require.NoError(t, err)
}

// faults returns a line for each fault of a file's prose, and counts its words by kind.
func faults(t *testing.T, path, text string, words map[string]int) (lines []string) {
	t.Helper()
	for _, p := range passages(t, path, text) {
		words[p.kind] += len(strings.Fields(p.text))
		if p.wide {
			lines = append(lines, fmt.Sprintf("%s:%d: more than 100 columns", path, p.line))
		}
		for _, v := range vague {
			word := v.words.FindString(p.text)
			// A level of Doom has things.
			doom := strings.HasPrefix(path, "tests/frogpond/") && strings.HasPrefix(strings.ToLower(word), "thing")
			if word != "" && !doom {
				lines = append(lines, fmt.Sprintf("%s:%d: %q in a %s: write %s", path, p.line, word, p.kind, v.instead))
			}
		}
	}
	return lines
}

// wideCode returns a line for each line of code with more than 120 columns. A raw string of Go may
// be wider, and a comment has faults of its own.
func wideCode(name, text string) (lines []string) {
	free := map[int]bool{}
	if path.Ext(name) == ".go" {
		files := token.NewFileSet()
		file := files.AddFile(name, -1, len(text))
		var scan scanner.Scanner
		scan.Init(file, []byte(text), nil, scanner.ScanComments)
		for pos, kind, literal := scan.Scan(); kind != token.EOF; pos, kind, literal = scan.Scan() {
			if kind != token.COMMENT && (kind != token.STRING || literal[0] != '`') {
				continue
			}
			line := file.Line(pos)
			begin := strings.LastIndexByte(text[:file.Offset(pos)], '\n') + 1
			for part := range strings.SplitSeq(text[begin:file.Offset(pos)]+literal, "\n") {
				free[line] = columns(part) > 117 // a bracket and comma may follow
				line++
			}
		}
	}
	for i, line := range strings.Split(text, "\n") {
		if columns(line) > 120 && !free[i+1] {
			lines = append(lines, fmt.Sprintf("%s:%d: code of more than 120 columns", name, i+1))
		}
	}
	return lines
}

// TestWideCode holds code to 120 columns.
func TestWideCode(t *testing.T) {
	sources(t, func(name, text string) {
		for _, line := range wideCode(name, text) {
			t.Error(line)
		}
	})
	wide := strings.Repeat("x", 119)
	for text, want := range map[string]int{
		"\"" + wide + "\"":                     1,
		"\t" + wide[:117]:                      1,
		"\t" + wide[:116]:                      0,
		"a := `" + wide + "`":                  0,
		"a := `" + wide + "\n" + wide + "`, b": 0,
		"a := ``, " + wide:                     1,
		"// " + wide:                           0,
	} {
		assert.Len(t, wideCode("a.go", text), want, text)
	}
	assert.Len(t, wideCode("a.c", "`"+wide+"`"), 1)
}

// TestProse holds pages, comments and messages to 100 columns and to nouns. With -v it counts their
// words.
func TestProse(t *testing.T) {
	words := map[string]int{}
	writings(t, func(path, text string) {
		if strings.HasPrefix(path, *prose) && !strings.HasSuffix(path, "prose_test.go") {
			for _, line := range faults(t, path, text, words) {
				t.Error(line)
			}
		}
	})
	t.Log("words of pages, comments and messages: ", words["page"], words["comment"], words["message"])
}

// TestProseFaults is the control: each kind of prose has its faults found, and text that isn't
// prose has none.
func TestProseFaults(t *testing.T) {
	wide := strings.Repeat("wide ", 20) + "."
	for _, c := range []struct{ path, text, lines string }{
		{"a.go", "package a\n\n// A is what was made.\nvar A = 1 // nobody's\n", "3 what, 4 nobody"},
		{"a.go", "package a\n\n// " + wide + "\nvar A = \"" + wide + "\"\n", "3 wide"},
		{"a.go", "package a\n\nvar A = \"the scope is what it was\"\nvar B = \"what\"\n", "3 what"},
		{"a_test.go", "package a\n\nvar A = \"the scope is what it was\"\n", ""},
		{"a.go", "package a\n\n//go:generate what\n\n// Code: `what`, \"who\".\n//\n//\twhat := 1\nvar A = 1\n", ""},
		{"a.go", "package a\n\nfunc Example() {\n\t// Output:\n\t// what\n}\n", ""},
		{"a.go", "package a\n\n/*\n// beside it\nint what;\n*/\nimport \"C\"\n", "4 beside"},
		{"a.go", "package a\n\n// static int what; /* beside it *" + "/\nimport \"C\"\n", "3 beside"},
		{"a.c", "int what; /* It lies\n * there. *" + "/\nchar *s = \"// who it is for\";\n", "1 lies, 3 who"},
		{"a.md", "A thing\n\n```go\nwhat\n```\n\n    what\n\n| " + wide + " |\n" + wide + "\n", "1 thing, 10 wide"},
		{"tests/frogpond/a.md", "A thing\n", ""},
		{"a.sh", "#!/bin/sh\nwhat\n# is told\n", "3 told"},
	} {
		var found []string
		for _, line := range faults(t, c.path, c.text, map[string]int{}) {
			parts := strings.SplitN(line, ":", 3)
			word, _, quoted := strings.Cut(strings.TrimPrefix(parts[2], ` "`), `"`)
			if !quoted {
				word = "wide"
			}
			found = append(found, parts[1]+" "+word)
		}
		slices.Sort(found)
		assert.Equal(t, c.lines, strings.Join(found, ", "), c.text)
	}
}
