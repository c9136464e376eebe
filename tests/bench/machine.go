package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

func machine(packages ...string) string {
	return fmt.Sprintf("%s, %s, %d cores; %s, %s%s.", time.Now().Format(time.DateOnly), processor(), runtime.NumCPU(),
		strings.Replace(runtime.Version(), "go", "Go ", 1), compiler(), versions(packages))
}

// versions returns a line with the names and versions of those of Debian's packages that are
// installed.
func versions(packages []string) string {
	var list []string
	for _, name := range packages {
		out, err := exec.Command("dpkg-query", "-W", "-f=${source:Package} ${source:Upstream-Version}", name).Output()
		if err == nil {
			list = append(list, string(out))
		}
	}
	if list == nil {
		return ""
	}
	return ",\n" + strings.Join(list, ", ")
}

func processor() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

func compiler() string {
	out, err := exec.Command("gcc", "-dumpfullversion").Output()
	if err != nil {
		return "an unknown C compiler"
	}
	return "gcc " + strings.TrimSpace(string(out)) + " -O2"
}
