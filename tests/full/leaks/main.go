//go:build linux && cgo

// Leaks is five programs that lose memory of C, for the page "Who holds C's memory":
//
//	leaks trees|statement|string|object|region FOLDER
//
// Each works in rounds, and loses a few objects in a round. Before the last rounds it writes the
// profile FOLDER/before.pb.gz, and at its end FOLDER/after.pb.gz.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/upfront-mem/upfront/arena/with/malloc"
	"github.com/upfront-mem/upfront/budget"
)

// programs return a round of each program.
var programs = map[string]func() (round func() error, err error){
	"trees": trees, "statement": statement, "string": text, "object": object, "region": region,
}

// used returns the bytes that the library has.
var used = func() uint64 { return malloc.ReadStats().Used }

var level budget.Region

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "leaks:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 || programs[args[0]] == nil {
		return errors.New("usage: leaks trees|statement|string|object|region FOLDER")
	}
	b, err := budget.Open(budget.Plan{
		Name:    "leaks",
		Pages:   budget.Pages{Prefault: budget.Off},
		Regions: []budget.RegionPlan{{Name: "level", Size: 64 * budget.MiB}},
		CHeap:   budget.CHeapPlan{Size: 256 * budget.MiB, Profile: 64 * budget.KiB},
	})
	if err != nil {
		return err
	}
	defer b.Close()
	level = b.Region("level")
	round, err := programs[args[0]]()
	for _, file := range []struct {
		name string
		used uint64
	}{{"before", 8 * budget.MiB}, {"after", 40 * budget.MiB}} {
		for err == nil && used() < file.used {
			err = round()
		}
		if err != nil {
			return err
		}
		if err := write(filepath.Join(args[1], file.name+".pb.gz")); err != nil {
			return err
		}
	}
	return nil
}

func write(name string) error {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(malloc.WriteProfile(file), file.Close())
}
