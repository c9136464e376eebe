package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

func machine() string {
	return fmt.Sprintf("%s, %s, %d cores; %s, %s.", time.Now().Format(time.DateOnly), processor(), runtime.NumCPU(),
		strings.Replace(runtime.Version(), "go", "Go ", 1), compiler())
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
