package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// consumed lists the files of other modules that the go command reads for a program that requires
// all published modules. A line is "path version" for a module's source, or "path version/go.mod"
// for its go.mod alone, as in a go.sum.
const consumed = "tests/run/testdata/consumed.txt"

// fetch downloads the missing ones of the files in consumed, so that TestConsumer needs no network.
func (p *prover) fetch() error {
	text, err := os.ReadFile(consumed)
	if err != nil {
		return err
	}
	downloads, err := p.downloads()
	if err != nil {
		return err
	}
	source, mod := goCommand("/", "mod", "download"), goCommand("/", "list", "-m")
	for line := range strings.Lines(string(text)) {
		path, version, _ := strings.Cut(strings.TrimSpace(line), " ")
		version, alone := strings.CutSuffix(version, "/go.mod")
		c, ext := &source, ".zip"
		if alone {
			c, ext = &mod, ".mod"
		}
		for _, ext := range []string{ext, ".info"} {
			if _, err := os.Stat(filepath.Join(downloads, escape(path), "@v", escape(version)+ext)); err != nil {
				c.args = append(c.args, path+"@"+version)
				break
			}
		}
	}
	for _, c := range []command{source, mod} {
		if len(c.args) > 3 {
			if err := p.do(c.with("GOFLAGS=-modcacherw")); err != nil {
				return fmt.Errorf("%w; make deps downloads it", err)
			}
		}
	}
	return nil
}

// downloads returns the part of the module cache that a proxy can have.
func (p *prover) downloads() (string, error) {
	cache, err := p.output(goCommand("", "env", "GOMODCACHE"))
	return filepath.Join(strings.TrimSpace(cache), "cache", "download"), err
}

// downloaded returns the lines of consumed for a folder of downloads, without the modules of this
// repository.
func downloaded(downloads string) (lines []string, err error) {
	err = filepath.WalkDir(downloads, func(name string, d fs.DirEntry, err error) error {
		path, version, found := strings.Cut(filepath.ToSlash(name), "/@v/")
		if err != nil || !found {
			return err
		}
		path, err = filepath.Rel(downloads, path)
		path = unescape(filepath.ToSlash(path))
		switch version, ext := unescape(version), filepath.Ext(version); {
		case ours(path):
		case ext == ".zip":
			lines = append(lines, path+" "+strings.TrimSuffix(version, ext))
		case ext == ".mod":
			source := strings.TrimSuffix(name, ext) + ".zip"
			if _, missing := os.Stat(source); errors.Is(missing, fs.ErrNotExist) {
				lines = append(lines, path+" "+strings.TrimSuffix(version, ext)+"/go.mod")
			}
		}
		return err
	})
	return lines, err
}

var upper, escaped = regexp.MustCompile(`[A-Z]`), regexp.MustCompile(`![a-z]`)

// escape returns a module's path or version as in the names of files of the module cache.
func escape(s string) string {
	return upper.ReplaceAllStringFunc(s, func(c string) string { return "!" + strings.ToLower(c) })
}

func unescape(s string) string {
	return escaped.ReplaceAllStringFunc(s, func(c string) string { return strings.ToUpper(c[1:]) })
}
