//go:build linux && cgo

package main

import (
	"strings"

	sitter "github.com/tree-sitter/go-tree-sitter"
	json "github.com/tree-sitter/tree-sitter-json/bindings/go"
)

// trees indexes documents, as an editor or an agent does. The index keeps the root of each document
// for its lines, and forgets that the tree behind it has to be closed.
func trees() (round func() error, err error) {
	document := []byte("[" + strings.Repeat(`{"frog": 1, "pond": [2, 3]}, `, 200) + "null]")
	roots := map[int]*sitter.Node{}
	parser := sitter.NewParser()
	if err := parser.SetLanguage(sitter.NewLanguage(json.Language())); err != nil {
		return nil, err
	}
	return func() error {
		lines(parser, document) // closes its tree
		roots[len(roots)] = index(parser, document)
		return nil
	}, nil
}

func index(parser *sitter.Parser, document []byte) *sitter.Node {
	tree := parser.Parse(document, nil) // the leak: trees
	return tree.RootNode()
}

func lines(parser *sitter.Parser, document []byte) uint {
	tree := parser.Parse(document, nil)
	defer tree.Close()
	return tree.RootNode().EndPosition().Row
}
