// Command clients tests each module that puts a library into a budget, one after the other, and
// compares its cost with the library's own default. `make check` runs it, in the root of the
// repository.
//
//	clients [-readme] [-out build/clients.json]
//
// A client is a folder such as scope/with/wazero with a go.mod of its own. A client's tests use
// package paired to log figures, and the bytes that are live at the end. A client that doesn't log
// both fails. UPFRONT_STEP sets the length of the tests, as in the modules themselves. With
// -readme, the command runs only the measurements, in their long form, and writes the table of each
// client's page.
//
// If a client's C library is missing, clients prints a line, and fails if REQUIRE_ALL is set.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/upfront-mem/upfront/tests/step"
)

// library is a C library of a client: its names for pkg-config and for Debian.
type library struct{ name, debian string }

var libraries = map[string]library{
	// in the short form; the long form compiles the module's own
	"arena/with/sqlite": {"sqlite3", "libsqlite3-dev"},
	"arena/with/lua":    {"lua5.4", "liblua5.4-dev"},
}

// shortTags make a client compile faster.
var shortTags = map[string]string{"arena/with/sqlite": "libsqlite3"}

type options struct {
	readme bool
	out    string
}

// full reports whether the figures count.
func (o options) full() bool { return o.readme || step.Now() == step.Soak }

func main() {
	var o options
	flag.BoolVar(&o.readme, "readme", false, "measure, and write the table of each page")
	flag.StringVar(&o.out, "out", "", "the JSON `file` to write")
	flag.Parse()
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "clients:", err)
		os.Exit(1)
	}
}

func run(o options) error {
	names, err := clients()
	if err != nil {
		return err
	}
	var errs []error
	results := map[string]*result{}
	for _, name := range names {
		if lacks := lacking(name, o); lacks != nil {
			fmt.Printf("%-22s %s%v\n", name, step.Unproven, lacks)
			if os.Getenv("REQUIRE_ALL") != "" {
				errs = append(errs, fmt.Errorf("REQUIRE_ALL is set, and %s lacks a library; make deps installs it",
					name))
			}
			continue
		}
		r, err := prove(name, o)
		if err == nil && o.readme {
			err = writePage(filepath.Join(name, "README.md"), r.Figures)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
		results[name] = r
	}
	if o.out != "" {
		errs = append(errs, write(o.out, results))
	}
	return errors.Join(errs...)
}

func clients() (names []string, err error) {
	for _, pattern := range []string{"arena/with/*/go.mod", "scope/with/*/go.mod", "tests/frogpond/mods/go.mod"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			return nil, err
		}
		for _, file := range found {
			names = append(names, filepath.ToSlash(filepath.Dir(file)))
		}
	}
	if names == nil {
		return nil, errors.New("no client is here; run clients in the root of the repository")
	}
	slices.Sort(names)
	return names, nil
}

// lacking returns an error that names a client's missing C library, or nil.
func lacking(name string, o options) error {
	lib, needs := libraries[name]
	if !needs || o.full() && shortTags[name] != "" {
		return nil
	}
	if err := exec.Command("pkg-config", "--exists", lib.name).Run(); err != nil {
		return fmt.Errorf("%s is not installed; Debian's package %s brings it", lib.name, lib.debian)
	}
	return nil
}

func write(name string, results map[string]*result) error {
	text, err := json.MarshalIndent(results, "", "\t")
	if err != nil {
		return err
	}
	if err = os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, append(text, '\n'), 0o644)
}
