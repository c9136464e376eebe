//go:build linux && cgo

package main

// // The library's own function. After it the library calls C's malloc, and aborts for NULL.
// extern void ts_set_allocator(void *malloc, void *calloc, void *realloc, void *free);
//
// static void allocate_in_c(void) { ts_set_allocator(0, 0, 0, 0); }
import "C"

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	sitter "github.com/tree-sitter/go-tree-sitter"
	json "github.com/tree-sitter/tree-sitter-json/bindings/go"

	"github.com/upfront-mem/upfront/arena/with/malloc"
)

// trees parses a text again and again and keeps the trees. The library ends the process when C's
// malloc is full. Above three quarters of the size the program pauses for each tree, so that more
// than a second is between a warning at four fifths and the full.
//
// The library allocates in C. With the argument "go" each request is a call into Go, as
// go-tree-sitter sets it up, and the functions in Go call C's malloc.
func trees(args []string, out io.Writer) error {
	if len(args) == 0 {
		C.allocate_in_c()
	}
	parser := sitter.NewParser()
	defer parser.Close()
	if err := parser.SetLanguage(sitter.NewLanguage(json.Language())); err != nil {
		return err
	}
	text := []byte("[" + strings.Repeat(`{"frog": 1}, `, 100) + "null]")
	before := malloc.ReadStats().Used
	var kept []*sitter.Tree
	for range 1_000_000 {
		tree := parser.Parse(text, nil)
		if tree == nil {
			return errors.New("no tree")
		}
		kept = append(kept, tree)
		s := malloc.ReadStats()
		if len(kept) == 100 {
			fmt.Fprintln(out, "bytes of a tree:", (s.Used-before)/100)
		}
		if s.Used > s.Size/4*3 {
			time.Sleep(20 * time.Millisecond)
		}
	}
	return errors.New("all trees fit")
}
