package lifetime

import (
	"bytes"
	"go/ast"
	"go/token"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// directive silences reports on its line, or on the next line if it is alone on its own. In a
// declaration's comment it silences the declaration, and before the package clause the file. The
// text after it is the reason.
const directive = "//upfront:keeps"

// keeping are the silenced ranges of a package.
type keeping [][2]token.Pos

func (k keeping) covers(pos token.Pos) bool {
	for _, r := range k {
		if r[0] <= pos && pos <= r[1] {
			return true
		}
	}
	return false
}

func keepsOf(pass *analysis.Pass) (list keeping) {
	for _, file := range pass.Files {
		for _, group := range file.Comments {
			for _, c := range group.List {
				word, _, _ := strings.Cut(strings.ReplaceAll(c.Text, "\t", " "), " ")
				if word == directive {
					list = append(list, covered(pass, file, group, c))
				}
			}
		}
	}
	return list
}

func covered(pass *analysis.Pass, file *ast.File, group *ast.CommentGroup, c *ast.Comment) [2]token.Pos {
	if c.Pos() < file.Package {
		return [2]token.Pos{file.FileStart, file.FileEnd}
	}
	for _, d := range file.Decls {
		var doc *ast.CommentGroup
		switch d := d.(type) {
		case *ast.FuncDecl:
			doc = d.Doc
		case *ast.GenDecl:
			doc = d.Doc
		}
		if doc == group {
			return [2]token.Pos{d.Pos(), d.End()}
		}
	}
	f := pass.Fset.File(c.Pos())
	line := f.PositionFor(c.Pos(), false).Line // files of cgo have lines of other files
	text, err := pass.ReadFile(f.Name())
	if err == nil && f.Offset(c.Pos()) <= len(text) {
		before := text[:f.Offset(c.Pos())]
		if len(bytes.TrimSpace(before[bytes.LastIndexByte(before, '\n')+1:])) == 0 {
			line++
		}
	}
	line = min(line, f.LineCount())
	end := file.FileEnd
	if line < f.LineCount() {
		end = f.LineStart(line+1) - 1
	}
	return [2]token.Pos{f.LineStart(line), end}
}
