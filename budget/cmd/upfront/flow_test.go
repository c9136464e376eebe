package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const graphs = "../../../scope/flow/source/testdata/"

// TestCommands compares commands and their output with testdata/flow.txt.
func TestCommands(t *testing.T) {
	dir := t.TempDir()
	var all strings.Builder
	for _, command := range []string{
		"flow check GRAPHS/door.json",
		"flow check GRAPHS/door.json GRAPHS/bad.json --host GRAPHS/host.json",
		"flow check GRAPHS/none.json",
		"flow check GRAPHS/bad.json",
		"flow compile GRAPHS/door.json",
		"flow compile GRAPHS/every.json --host GRAPHS/host.json -o DIR/every.blob",
		"flow check DIR/every.blob --host GRAPHS/host.json",
		"flow export DIR/every.blob",
		"flow strip DIR/every.blob DIR/stripped.blob",
		"flow strip DIR/stripped.blob DIR/again.blob --json",
		"flow strip GRAPHS/door.json DIR/again.blob",
		"flow check DIR/stripped.blob --host GRAPHS/host.json",
		"flow draw DIR/stripped.blob",
		"flow draw DIR/every.blob -o DIR/every.dot",
		"flow draw GRAPHS/door.json -o DIR/door.svg",
		"flow trace GRAPHS/door.json -e line.used -k 12 -v keys=1",
		"flow trace GRAPHS/door.json --host GRAPHS/host.json -e line.used -k 12",
		"flow trace GRAPHS/door.json -e line.used -k 13",
		"flow trace GRAPHS/door.json -e line.used -v keys=1.5",
		"flow trace GRAPHS/door.json -e line.used -v tag=1",
		"flow trace GRAPHS/door.json -e line.crossed",
		"flow trace DIR/every.blob -e line.used -k -1 --ticks 40",
		"flow trace DIR/every.blob -e line.used -k -1 --steps 3",
		"flow check GRAPHS/door.json GRAPHS/bad.json GRAPHS/none.json",
		"flow check GRAPHS/door.json GRAPHS/bad.json --json",
		"flow compile GRAPHS/door.json --host GRAPHS/host.json -o DIR/door.blob --json",
		"flow draw GRAPHS/door.json -o DIR/door.dot --json",
		"flow trace GRAPHS/door.json -e line.used -k 12 -v keys=1 --json",
		"flow trace GRAPHS/door.json -e line.crossed --json",
		"flow check",
		"flow chek",
		"flow",
	} {
		all.WriteString(shown(command, map[string]string{"GRAPHS/": graphs, "DIR": dir}))
	}
	for name, begins := range map[string]string{"every.dot": "digraph \"every node\"", "door.svg": "<svg "} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !strings.HasPrefix(string(text), begins) {
			t.Errorf("%s: %.20q, %v", name, text, err)
		}
	}
	compare(t, "testdata/flow.txt", all.String())
}

// TestDamagedBlob changes one byte of a blob, at about a hundred places in turn: the result is an
// error, not a panic.
func TestDamagedBlob(t *testing.T) {
	name := filepath.Join(t.TempDir(), "door.blob")
	if code, out, said := runs("flow", "compile", graphs+"door.json", "--host", graphs+"host.json", "-o",
		name); code != codeFine {
		t.Fatal(out, said)
	}
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(data); i += 1 + len(data)/100 {
		damaged := bytes.Clone(data)
		damaged[i] ^= 0x41
		if err := os.WriteFile(name, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"flow", "export", name}, {"flow", "strip", name, "-"}} {
			if code, out, said := runs(args...); code != codeFound || out != "" || !strings.HasPrefix(said, name+":") {
				t.Fatalf("byte %d: exit %d, %s%s", i, code, out, said)
			}
		}
	}
}

// TestOutputsAreReplaced: a command that writes over a file leaves the old one whole, under its
// other name, until the new one is. A full disk reaches neither.
func TestOutputsAreReplaced(t *testing.T) {
	dir := t.TempDir()
	compile := []string{"flow", "compile", graphs + "door.json", "--host", graphs + "host.json", "-o"}
	blob := filepath.Join(dir, "door.blob")
	if code, _, said := runs(append(compile, blob)...); code != codeFine {
		t.Fatal(said)
	}
	for _, command := range [][]string{append(compile, "compiled"), {"flow", "strip", blob, "stripped"},
		{"plan", "suggest", "testdata/main.json", "-o", "suggested"}} {
		args := append([]string{}, command...)
		file := filepath.Join(dir, args[len(args)-1])
		args[len(args)-1] = file
		if err := errors.Join(os.WriteFile(file, []byte("old"), 0o600), os.Link(file, file+".old")); err != nil {
			t.Fatal(err)
		}
		if code, _, said := runs(args...); code != codeFine {
			t.Errorf("%v: exit %d, %s", args, code, said)
		}
		if old, err := os.ReadFile(file + ".old"); err != nil || string(old) != "old" {
			t.Errorf("%v: the old file has %d bytes: %v", args, len(old), err)
		}
		if now, err := os.ReadFile(file); err != nil || string(now) == "old" {
			t.Errorf("%v: the file is the old one: %v", args, err)
		}
	}
	const full = "/dev/full"
	if _, err := os.Stat(full); err != nil {
		t.Skip("needs /dev/full: on Linux, go test ./upfront runs it")
	}
	if code, _, said := runs(append(compile, full)...); code != codeTrouble ||
		!strings.Contains(said, "no space left on device") {
		t.Errorf("exit %d, %s", code, said)
	}
}
