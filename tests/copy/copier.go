package main

import (
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// copier copies folders of the library into a module.
type copier struct {
	root, dir string            // of the library, and of the module
	module    string            // its path
	folders   map[string]string // folders of the module, by the library's folders
}

// folder copies a folder of the library, and the packages of tests that it imports. It leaves out
// modules below it, and repository_test.go, which tests pages of the library.
func (c *copier) folder(name string) error {
	from := filepath.Join(c.root, filepath.FromSlash(name))
	to := filepath.Join(c.dir, filepath.FromSlash(c.folders[name]))
	return filepath.WalkDir(from, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rest, err := filepath.Rel(from, file)
		if err != nil {
			return err
		}
		if d.Name() == "repository_test.go" {
			return nil
		}
		if !d.IsDir() {
			return c.file(path.Join(name, filepath.ToSlash(rest)), filepath.Join(to, rest))
		}
		if _, err := os.Stat(filepath.Join(file, "go.mod")); err == nil {
			return filepath.SkipDir
		}
		return os.MkdirAll(filepath.Join(to, rest), 0o755)
	})
}

// file copies a file of the library, and rewrites its imports and links so that they lead to the
// same places.
func (c *copier) file(name, to string) error {
	from := filepath.Join(c.root, filepath.FromSlash(name))
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	switch path.Ext(name) {
	case ".go":
		text, err = c.imports(name, text)
	case ".md":
		text = c.links(path.Dir(name), text)
	}
	if err != nil {
		return err
	}
	return os.WriteFile(to, text, info.Mode().Perm()|0o200) // a module cache is read-only
}

// imports rewrites the imports of packages below tests, and otherwise only sorts them.
func (c *copier) imports(name string, text []byte) ([]byte, error) {
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, name, text, parser.ImportsOnly)
	if err != nil {
		return nil, err
	}
	for _, spec := range slices.Backward(f.Imports) { // from the last, so that offsets stay
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, err
		}
		below, ok := strings.CutPrefix(imported, library+"/tests/")
		if !ok {
			continue
		}
		own, err := c.own("tests/" + below)
		if err != nil {
			return nil, err
		}
		at := files.Position(spec.Path.Pos()).Offset
		text = slices.Replace(text, at, at+len(spec.Path.Value), []byte(strconv.Quote(own))...)
	}
	return format.Source(text)
}

// own returns the import path, in the new module, of a package of the library. It first copies a
// package outside of the copied folders to internal.
func (c *copier) own(name string) (string, error) {
	for from, to := range c.folders {
		if name == from || strings.HasPrefix(name, from+"/") {
			return path.Join(c.module, to, strings.TrimPrefix(name, from)), nil
		}
	}
	c.folders[name] = "internal/" + path.Base(name)
	if err := c.folder(name); err != nil {
		return "", err
	}
	return path.Join(c.module, c.folders[name]), nil
}

var (
	link     = regexp.MustCompile(`\]\(([^):#]+)`)
	packages = regexp.MustCompile(`\./tests/[a-z]+`)
)

// copied reports whether a file of the library is copied to the module.
func (c *copier) copied(name string) bool {
	for below := name; below != "."; below = path.Dir(below) {
		if _, ok := c.folders[below]; ok {
			return true
		}
		if _, err := os.Stat(filepath.Join(c.root, below, "go.mod")); err == nil {
			return false
		}
	}
	return false
}

// links rewrites the links of a page that lead out of the copied folders, and the folders in its
// commands.
func (c *copier) links(folder string, page []byte) []byte {
	page = link.ReplaceAllFunc(page, func(found []byte) []byte {
		target := path.Join(folder, string(found[2:]))
		if _, err := os.Stat(filepath.Join(c.root, target)); err != nil || c.copied(target) {
			return found
		}
		return []byte("](https://" + library + "/blob/main/" + target)
	})
	return packages.ReplaceAllFunc(page, func(found []byte) []byte {
		if to, ok := c.folders[string(found[2:])]; ok {
			return []byte(to)
		}
		return found
	})
}
