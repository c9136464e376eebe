package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/upfront-mem/upfront/tests/step"
)

// frogpond is the game server's folder.
const frogpond = "tests/frogpond"

// eachTarget calls do for the named targets of a list, or for all targets with a compiler on this
// machine. It reports the missing tools of the other targets, and fails if linux-arm64 is one of
// these.
func (p *prover) eachTarget(list []target, names []string, do func(target) error) error {
	for _, name := range names {
		if !slices.ContainsFunc(list, func(t target) bool { return t.Name == name }) {
			return fmt.Errorf("%s: no target %q for this command", targetsFile, name)
		}
	}
	for _, t := range list {
		if len(names) > 0 && !slices.Contains(names, t.Name) {
			continue
		}
		if lacks := t.lacks(); lacks != "" {
			p.lacks(t.Name, lacks, strings.Join(t.Debian, ", "))
			if t.Name == "linux-arm64" {
				return errors.Join(p.conclude(), errors.New("nothing is built for a handheld without linux-arm64"))
			}
			continue
		}
		if err := t.prepare(); err != nil {
			return err
		}
		if err := p.alone(t.Name, func() error { return do(t) }); err != nil {
			return err
		}
	}
	return nil
}

// cross builds the files for devices, linux-arm64's first. Then it compiles for the systems without
// an emulator.
func (p *prover) cross(t targets, names []string) error {
	if err := p.eachTarget(t.forDevices(), names, p.build); err != nil {
		return err
	}
	for _, x := range t.Compiled {
		if len(names) > 0 {
			break
		}
		if err := p.alone(x.Name, func() error { return p.compile(x) }); err != nil {
			return err
		}
	}
	return p.conclude()
}

// prepare makes the target's folder, with the link to its compiler.
func (t target) prepare() error {
	compiler, err := exec.LookPath(t.cc())
	if err != nil {
		return err
	}
	if err = os.MkdirAll(t.folder(), 0o755); err != nil {
		return err
	}
	link := filepath.Join(t.folder(), "gcc")
	if err = os.Remove(link); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Symlink(compiler, link)
}

// build builds the files of a device: the library, frogpond and the C library.
func (p *prover) build(t target) error {
	args := append([]string{"build"}, t.Flags...)
	if err := p.do(goCommand("", append(args, "./arena/...", "./scope/...", "./budget/...",
		"./platform/...")...).with(t.env()...)); err != nil {
		return err
	}
	if err := p.do(goCommand("", append(args, "-o", t.folder()+"/", "./"+frogpond)...).with(t.env()...)); err != nil {
		return err
	}
	return p.install(t, filepath.Join(t.folder(), "lib"), "PREFIX=/usr/local")
}

// install runs make install of the C library into a folder.
func (p *prover) install(t target, to string, variables ...string) error {
	absolute, err := filepath.Abs(to)
	if err != nil {
		return err
	}
	args := []string{"make", "-s", "install", "CC=" + t.cc(), "AR=" + strings.TrimSuffix(t.cc(), "gcc") + "ar",
		"LIB=" + t.folder() + "/objects", "DESTDIR=" + absolute}
	return p.do(command{args: append(args, variables...)}.with("MAKEFLAGS="))
}

// compile compiles for a system without an emulator, if its compiler is on this machine.
func (p *prover) compile(x compiled) error {
	if !have(x.CC) {
		p.lacks(x.Name, x.CC, strings.Join(x.Debian, ", "))
		return nil
	}
	if err := os.MkdirAll(filepath.Join("build", x.Name), 0o755); err != nil {
		return err
	}
	for _, line := range x.Commands {
		if err := p.do(command{args: []string{"sh", "-c", line}}.with(x.Env...)); err != nil {
			return err
		}
	}
	return nil
}

// emulated runs a target's tests and the C core's under its emulator, some again with larger pages.
// Make soak runs those of inFull in full. All others run in their quick form.
func (p *prover) emulated(t target, tests, paged []string) error {
	if slices.Contains(tests, "all") {
		m, err := newMatrix()
		if err != nil {
			return err
		}
		tests = slices.DeleteFunc(m.packages, t.leftOut)
	}
	for _, page := range []int{0, 16 << 10, 64 << 10} {
		var lists [step.Soak][]string
		for _, name := range tests {
			form := step.Test
			if p.step == step.Soak && slices.Contains(inFull, name) {
				form = step.Check
			}
			if page == 0 || slices.Contains(paged, name) {
				lists[form] = append(lists[form], name)
			}
		}
		for form, list := range lists {
			if len(list) == 0 {
				continue
			}
			if err := p.emulate(t, step.Step(form), page, list); err != nil {
				return err
			}
		}
	}
	return p.emulatedCore(t)
}

// emulate runs the tests of packages under the target's emulator, in a step's form.
func (p *prover) emulate(t target, form step.Step, page int, packages []string, more ...string) error {
	run, err := t.exec(form, page)
	if err != nil {
		return err
	}
	args := slices.Concat(t.Flags, run, []string{vetted, limit, t.skip()}, more)
	for _, name := range packages {
		args = append(args, "./"+name)
	}
	return p.goTest("", append(t.env(), step.Variable+"="+form.String()), false, args...)
}

func (p *prover) emulatedCore(t target) error {
	return p.do(command{args: []string{"sh", "tests/c/run.sh", t.folder() + "/c", "cross"}}.with(
		"CC="+t.cc(), "CFLAGS="+t.CFlags, "RUN="+strings.Join(t.run(0), " ")))
}

// saves plays maps of a WAD here, continues a save there and another here, and checks the end
// against an uninterrupted game.
func (p *prover) saves(t target, wad string, maps ...string) error {
	if err := p.do(goCommand("", "build", "-o", "build/frogpond", "./"+frogpond)); err != nil {
		return err
	}
	args := append([]string{"build"}, t.Flags...)
	if err := p.do(goCommand("", append(args, "-o", t.folder()+"/", "./"+frogpond)...).with(t.env()...)); err != nil {
		return err
	}
	there := strings.Join(append(t.run(0), t.folder()+"/frogpond"), " ")
	return p.do(command{args: append([]string{"sh", frogpond + "/save.sh", "build/frogpond", there,
		t.folder() + "/saves", wad}, maps...)})
}

// eachDevice plays the built-in maps as on each device: with its plan, its processor, its pages.
// States and memory must be those recorded here.
func (p *prover) eachDevice(t targets, names []string) error {
	for _, d := range t.Devices {
		if len(names) > 0 && !slices.Contains(names, d.Name) {
			continue
		}
		x, err := t.target(d.Target)
		if err != nil {
			return err
		}
		if lacks := x.lacks(); lacks != "" {
			p.lacks(d.Name, lacks, strings.Join(x.Debian, ", "))
			continue
		}
		if err = x.prepare(); err == nil {
			err = p.alone(d.Name, func() error { return p.device(x, d) })
		}
		if err != nil {
			return err
		}
	}
	return p.conclude()
}

func (p *prover) device(t target, d device) error {
	program, err := filepath.Abs(filepath.Join("build", d.Name+".test"))
	if err != nil {
		return err
	}
	plan, err := filepath.Abs(filepath.Join("cross", d.Name+".json"))
	if err != nil {
		return err
	}
	args := append(append([]string{"test", "-c"}, t.Flags...), "-o", program, "./"+frogpond)
	if err = p.do(goCommand("", args...).with(append(t.env(), d.Env, "CGO_CFLAGS=-O2 -g "+d.CFlags)...)); err != nil {
		return err
	}
	return p.do(command{dir: frogpond, args: append(t.run(0), program, "-test.run=^TestHashes$/^builtin$",
		"-plan="+plan)}.with(
		"QEMU_CPU="+d.CPU, "QEMU_PAGESIZE="+strconv.Itoa(d.Page)))
}

// dist packs a target's frogpond, C library and README. The same commit makes the same bytes.
func (p *prover) dist(t target) error {
	version, err := cVersion()
	if err != nil {
		return err
	}
	name := "upfront-" + version + "-" + t.Name
	root := filepath.Join("build/dist", name)
	if err = os.RemoveAll(root); err != nil {
		return err
	}
	if err = os.MkdirAll(filepath.Join(root, "bin"), 0o755); err != nil {
		return err
	}
	args := append([]string{"build", "-trimpath"}, t.Flags...)
	if err = p.do(goCommand("", append(args, "-o", root+"/bin/", "./"+frogpond)...).with(t.env()...)); err != nil {
		return err
	}
	if err = p.install(t, root, "PREFIX=", "PC_PREFIX=$${pcfiledir}/../.."); err != nil {
		return err
	}
	needs, err := p.output(command{args: []string{"readelf", "-V", root + "/bin/frogpond"}})
	if err != nil {
		return err
	}
	text, err := os.ReadFile("cross/dist.txt")
	if err != nil {
		return err
	}
	readme := strings.NewReplacer("@VERSION@", version, "@TARGET@", t.Name, "@CC@", t.cc(), "@LIBC@",
		newestGlibc(needs)).Replace(string(text))
	if err = os.WriteFile(filepath.Join(root, "README"), []byte(readme), 0o644); err != nil {
		return err
	}
	license, err := os.ReadFile("LICENSE")
	if err != nil {
		return err
	}
	if err = os.WriteFile(filepath.Join(root, "LICENSE"), license, 0o644); err != nil {
		return err
	}
	at, err := p.commitTime()
	if err != nil {
		return err
	}
	return pack(root+".tar.gz", "build/dist", name, at)
}

func cVersion() (string, error) {
	text, err := os.ReadFile("arena_c/upfront.h")
	if err != nil {
		return "", err
	}
	found := regexp.MustCompile(`UPFRONT_VERSION "(.*)"`).FindSubmatch(text)
	if found == nil {
		return "", errors.New("arena_c/upfront.h has no UPFRONT_VERSION")
	}
	return string(found[1]), nil
}

// newestGlibc returns the newest version of the C library that readelf -V names.
func newestGlibc(text string) string {
	newest, number := "nothing, it is static", -1
	for _, found := range regexp.MustCompile(`GLIBC_2\.(\d+)`).FindAllStringSubmatch(text, -1) {
		if minor, err := strconv.Atoi(found[1]); err == nil && minor > number {
			newest, number = found[0], minor
		}
	}
	return newest
}

// commitTime returns the time of an archive's files: SOURCE_DATE_EPOCH, the commit's time, or 0.
func (p *prover) commitTime() (time.Time, error) {
	text := os.Getenv("SOURCE_DATE_EPOCH")
	if text == "" {
		out, err := exec.Command("git", "log", "-1", "--format=%ct").Output()
		if err != nil {
			return time.Unix(0, 0), nil // not a checkout
		}
		text = strings.TrimSpace(string(out))
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH=%s: want seconds since 1970", text)
	}
	return time.Unix(seconds, 0), nil
}

// pack writes a folder as a compressed archive, in the order of names. The archive has no data of
// this machine.
func pack(file, in, name string, at time.Time) (err error) {
	to, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	compressed, err := gzip.NewWriterLevel(to, gzip.BestCompression)
	if err != nil {
		return err
	}
	archive := tar.NewWriter(compressed)
	root := os.DirFS(in)
	err = fs.WalkDir(root, name, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		header := &tar.Header{Name: path, ModTime: at, Mode: 0o644, Format: tar.FormatUSTAR, Typeflag: tar.TypeReg,
			Size: info.Size()}
		if d.IsDir() {
			header.Name, header.Typeflag, header.Size = path+"/", tar.TypeDir, 0
		}
		if info.Mode()&0o100 != 0 {
			header.Mode = 0o755
		}
		if err = archive.WriteHeader(header); err != nil || d.IsDir() {
			return err
		}
		from, err := root.Open(path)
		if err != nil {
			return err
		}
		defer from.Close()
		_, err = io.Copy(archive, from)
		return err
	})
	return errors.Join(err, archive.Close(), compressed.Close())
}
