package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// home is the path of the root module, and the beginning of the paths of its nested modules.
const home = "github.com/upfront-mem/upfront"

// published reports whether a release has the module in a folder. The modules below tests are for
// the repository alone.
func published(dir string) bool { return !strings.HasPrefix(dir, "tests/") }

// pathOf returns the path of the published module in a folder.
func pathOf(dir string) string {
	if dir == "." {
		return home
	}
	return home + "/" + dir
}

// tagOf returns the tag of a version of the module in a folder.
func tagOf(dir, version string) string {
	if dir == "." {
		return version
	}
	return dir + "/" + version
}

// release makes a Git repository in the folder out, which must not exist. It has the history of the
// commit that is checked out here, one more commit, and the tags of the version for each published
// module. In that commit the published modules require each other in that version, without a
// replace directive, and their go.sum files have the sums that a tag gives. Nothing is pushed.
func (p *prover) release(version, out string) error {
	if err := p.releasable(version); err != nil {
		return err
	}
	if _, err := os.Lstat(out); err == nil {
		return fmt.Errorf("%s exists; name a folder to make", out)
	}
	out, err := filepath.Abs(out)
	if err != nil {
		return err
	}
	if err = p.do(command{args: []string{"git", "clone", "-q", "--no-tags", ".", out}}); err != nil {
		return err
	}
	list, err := modules()
	if err != nil {
		return err
	}
	requires, required := map[string][]string{}, map[string]bool{}
	for _, dir := range list {
		if requires[dir], err = p.requireVersion(filepath.Join(out, dir), version, published(dir)); err != nil {
			return err
		}
		for _, path := range requires[dir] {
			required[path] = required[path] || published(dir)
		}
	}
	list = slices.DeleteFunc(list, func(dir string) bool { return !published(dir) })
	cache, err := os.MkdirTemp("", "upfront-release")
	if err != nil {
		return err
	}
	defer os.RemoveAll(cache)
	git := func(args ...string) error { return p.do(command{dir: out, args: append([]string{"git"}, args...)}) }
	if err = git("commit", "-q", "-a", "-m", "upfront "+version); err != nil {
		return err
	}
	// The sum of a module depends on its go.sum. Therefore a module comes after those that it
	// requires.
	sums := map[string][]string{} // lines of go.sum, by path
	for left := slices.Clone(list); len(left) > 0; {
		i := slices.IndexFunc(left, func(dir string) bool {
			return !slices.ContainsFunc(requires[dir], func(path string) bool { return sums[path] == nil })
		})
		if i < 0 {
			return fmt.Errorf("modules require each other: %s", strings.Join(left, " "))
		}
		dir := left[i]
		left = slices.Delete(left, i, i+1)
		var lines []string
		for _, path := range requires[dir] {
			lines = append(lines, sums[path]...)
		}
		if err = writeSums(filepath.Join(out, dir, "go.sum"), lines); err != nil {
			return err
		}
		if err = git("commit", "-q", "-a", "--amend", "--no-edit"); err != nil {
			return err
		}
		if !required[pathOf(dir)] {
			continue
		}
		if err = git("tag", tagOf(dir, version)); err != nil {
			return err
		}
		if sums[pathOf(dir)], err = p.sumsOf(out, cache, pathOf(dir), version); err != nil {
			return err
		}
	}
	for _, dir := range list { // modules that have a tag are the same in the last commit
		if err = git("tag", "-f", tagOf(dir, version)); err != nil {
			return err
		}
	}
	return nil
}

// releasable returns an error if this folder isn't ready for a release of the version.
func (p *prover) releasable(version string) error {
	if !regexp.MustCompile(`^v\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$`).MatchString(version) {
		return fmt.Errorf("%q is no version such as v0.1.0", version)
	}
	for file, line := range map[string]string{
		"arena_c/upfront.h":    `#define UPFRONT_VERSION "` + version[1:] + `"`,
		".github/CHANGELOG.md": "\n## " + version[1:],
	} {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if !strings.Contains(string(text), line) {
			return fmt.Errorf("%s isn't of %s: it lacks the line %q", file, version, strings.TrimSpace(line))
		}
	}
	status, err := p.output(command{args: []string{"git", "status", "--porcelain"}})
	if err == nil && status != "" {
		err = fmt.Errorf("the folder has changes that are in no commit:\n%s", status)
	}
	return err
}

// requireVersion edits the go.mod in a folder: the modules of this repository are required in the
// version and, if alone is set, not replaced. It returns their paths.
func (p *prover) requireVersion(dir, version string, alone bool) (paths []string, err error) {
	text, err := p.output(goCommand(dir, "mod", "edit", "-json"))
	if err != nil {
		return nil, err
	}
	var mod struct {
		Require []struct{ Path string }
		Replace []struct{ Old struct{ Path string } }
	}
	if err = json.Unmarshal([]byte(text), &mod); err != nil {
		return nil, err
	}
	edit := goCommand(dir, "mod", "edit")
	for _, r := range mod.Require {
		if ours(r.Path) {
			paths = append(paths, r.Path)
			edit.args = append(edit.args, "-require="+r.Path+"@"+version)
		}
	}
	for _, r := range mod.Replace {
		if alone && ours(r.Old.Path) {
			edit.args = append(edit.args, "-dropreplace="+r.Old.Path)
		}
	}
	if len(edit.args) == 3 {
		return nil, nil
	}
	return paths, p.do(edit)
}

func ours(path string) bool { return path == home || strings.HasPrefix(path, home+"/") }

// sumsOf returns the lines of go.sum for the tag of a module in the repository out.
func (p *prover) sumsOf(out, cache, path, version string) ([]string, error) {
	download := goCommand("/", "mod", "download", "-json", path+"@"+version).with(fromTags(out, cache, "off")...)
	text, err := p.output(download)
	if err != nil {
		return nil, err
	}
	var m struct{ Sum, GoModSum string }
	if err = json.Unmarshal([]byte(text), &m); err != nil {
		return nil, err
	}
	return []string{path + " " + version + " " + m.Sum, path + " " + version + "/go.mod " + m.GoModSum}, nil
}

// fromTags returns the environment in which the go command takes the modules of this repository
// from the tags of the repository out, other modules from a proxy, and keeps both in the folder
// cache.
func fromTags(out, cache, proxy string) []string {
	return []string{"GOMODCACHE=" + cache, "GOPROXY=" + proxy, "GONOPROXY=" + home, "GONOSUMDB=" + home,
		"GOFLAGS=" + os.Getenv("GOFLAGS") + " -modcacherw", "GOWORK=off", "GOTOOLCHAIN=local", "GIT_CONFIG_COUNT=2",
		"GIT_CONFIG_KEY_0=url.file://" + out + ".insteadOf", "GIT_CONFIG_VALUE_0=https://" + home,
		"GIT_CONFIG_KEY_1=safe.directory", "GIT_CONFIG_VALUE_1=*"}
}

// writeSums adds lines to a go.sum, which has none of their modules.
func writeSums(file string, lines []string) error {
	text, err := os.ReadFile(file)
	if err != nil || len(lines) == 0 {
		return err
	}
	lines = append(strings.Split(strings.TrimSpace(string(text)), "\n"), lines...)
	slices.SortStableFunc(lines, func(a, b string) int {
		path := func(line string) string { path, _, _ := strings.Cut(line, " "); return path }
		return strings.Compare(path(a), path(b))
	})
	return os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o644)
}
