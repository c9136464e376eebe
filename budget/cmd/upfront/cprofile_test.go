package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/pprof/profile"
)

// cProfile makes a profile as malloc.WriteProfile does: a string that Go copied to C, and a block
// of a thread of C.
func cProfile() *profile.Profile {
	goCode, libc := &profile.Mapping{ID: 1, File: "/pond/pond"}, &profile.Mapping{ID: 2, File: "/lib/libc.so.6"}
	p := &profile.Profile{Mapping: []*profile.Mapping{goCode, libc}, Comments: []string{"3 samples are missing"}}
	for _, name := range typesOfC {
		p.SampleType = append(p.SampleType, &profile.ValueType{Type: name, Unit: "bytes"})
	}
	location := func(m *profile.Mapping, name, file string, line int64) *profile.Location {
		f := &profile.Function{ID: uint64(len(p.Function) + 1), Name: name, Filename: file}
		l := &profile.Location{ID: f.ID, Mapping: m, Line: []profile.Line{{Function: f, Line: line}}}
		p.Function, p.Location = append(p.Function, f), append(p.Location, l)
		return l
	}
	malloc, inC := location(libc, "__strdup", "", 0), location(goCode, "copy_line", "/pond/load.go", 5)
	call := location(goCode, "C.strdup", "", 0)
	load, start := location(goCode, "pond.load", "/pond/load.go", 31), location(goCode, "main.main", "/pond/main.go", 7)
	nameless := &profile.Location{ID: 6, Mapping: libc, Address: 4711}
	p.Location = append(p.Location, nameless)
	thread := location(libc, "start_thread", "", 0)
	thread.ID = 7
	p.Sample = []*profile.Sample{
		{Location: []*profile.Location{malloc, inC, call, load, start}, Value: []int64{20, 2000, 10, 1 << 20}},
		{Location: []*profile.Location{malloc, call, load}, Value: []int64{20, 2000, 10, 1 << 20}},
		{Location: []*profile.Location{nameless, thread}, Value: []int64{3, 3 << 20, 1, 1 << 20}},
		{Location: []*profile.Location{nameless}, Value: []int64{3, 300, 0, 0}},
	}
	return p
}

// TestProfileOfC: profile lists the lines of Go that have most of C's heap, or keeps the profile.
func TestProfileOfC(t *testing.T) {
	dir := t.TempDir()
	file, kept := filepath.Join(dir, "c.pb.gz"), filepath.Join(dir, "kept.pb.gz")
	var data bytes.Buffer
	if err := cProfile().Write(&data); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, data.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"profile", file}, "C heap: about 3072KiB in use\n3 samples are missing\n\n" +
			" in use          made at               calls\n" +
			"2048KiB  66.7 %  load.go:31 pond.load  C.strdup\n" +
			"1024KiB  33.3 %                        start_thread\n"},
		{[]string{"profile", file, "--top", "1"}, "C heap: about 3072KiB in use\n3 samples are missing\n\n" +
			" in use          made at               calls\n" +
			"2048KiB  66.7 %  load.go:31 pond.load  C.strdup\n" +
			"1024KiB  33.3 %  1 more\n"},
		{[]string{"profile", file, "-o", kept}, ""},
	} {
		if code, out, said := runs(c.args...); code != codeFine || out != c.want {
			t.Errorf("%v: exit %d, %s\n%s", c.args, code, said, out)
		}
	}
	shared := cProfile()
	for i, name := range []string{"region level", "frame 0"} {
		s := shared.Sample[i]
		s.Label = map[string][]string{"arena": {"budget \"pond\": " + name}}
		s.Location[0].Line[0].Function.Name = "github.com/upfront-mem/upfront/arena.Shared.Alloc"
		s.Location[0].Line[0].Function.Filename = "shared.go"
		s.Location = []*profile.Location{s.Location[0], shared.Location[3]}
	}
	shared.Sample[1].Value[3] = 1 << 19
	var labelled bytes.Buffer
	if err := shared.Write(&labelled); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, labelled.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	const want = "C heap: about 1024KiB in use\n" +
		"budget \"pond\": region level: about 1024KiB in use\n" +
		"budget \"pond\": frame 0: about 512KiB in use\n3 samples are missing\n\n" +
		" in use          made at               calls               in\n" +
		"1024KiB  40.0 %                        start_thread        C heap\n" +
		"1024KiB  40.0 %  load.go:31 pond.load  arena.Shared.Alloc  region level\n" +
		" 512KiB  20.0 %  load.go:31 pond.load  arena.Shared.Alloc  frame 0\n"
	if code, out, said := runs("profile", file); code != codeFine || out != want {
		t.Errorf("exit %d, %s\n%s", code, said, out)
	}
	again, err := os.ReadFile(kept)
	if err != nil || profileOfC(again) == nil {
		t.Errorf("the profile wasn't kept: %v", err)
	}
	if profileOfC([]byte("\x1f\x8b")) != nil {
		t.Error("torn data are a profile")
	}
}
