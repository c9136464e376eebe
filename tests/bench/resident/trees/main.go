// Command trees parses the sources of Go's packages with tree-sitter. Each goroutine keeps the
// trees of its files until all files are parsed.
package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	sitter "github.com/tree-sitter/go-tree-sitter"
	golang "github.com/tree-sitter/tree-sitter-go/bindings/go"

	"github.com/upfront-mem/upfront/tests/bench/resident/process"
)

func main() {
	defer process.Open()()
	process.Main(parse)
}

// folders are of Go's own sources.
var folders = []string{"go/ast", "go/parser", "go/printer", "go/types", "net", "net/http"}

func parse(goroutine int) (sum uint64, free func(), err error) {
	files, err := sources()
	if err != nil {
		return 0, nil, err
	}
	parser := sitter.NewParser()
	defer parser.Close()
	if err := parser.SetLanguage(sitter.NewLanguage(golang.Language())); err != nil {
		return 0, nil, err
	}
	var trees []*sitter.Tree
	free = func() {
		for _, t := range trees {
			t.Close()
		}
	}
	for i := goroutine; i < len(files); i += process.Goroutines {
		text, err := os.ReadFile(files[i])
		if err != nil {
			return 0, free, err
		}
		tree := parser.Parse(text, nil)
		if tree == nil {
			return 0, free, errors.New("no tree of " + files[i])
		}
		trees = append(trees, tree)
		root := tree.RootNode()
		sum = sum*31 + uint64(root.DescendantCount())
	}
	return sum, free, nil
}

var sources = sync.OnceValues(func() (files []string, err error) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, err
	}
	for _, folder := range folders {
		found, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(root)), "src", folder, "*.go"))
		if err != nil {
			return nil, err
		}
		files = append(files, found...)
	}
	if len(files) < 10*process.Goroutines {
		return nil, errors.New("GOROOT has no sources")
	}
	return files, nil
})
