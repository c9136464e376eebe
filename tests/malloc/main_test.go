//go:build linux && cgo

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/tests/step"
)

// A process has one malloc, so each program runs in a process of its own: this test's program with
// childVariable set.
const childVariable = "UPFRONT_MALLOC_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) == "" {
		os.Exit(m.Run())
	}
	main()
}

// start runs a program of this package and returns its output, standard error included.
func start(arguments string) (string, error) {
	return startFile(os.Args[0], arguments)
}

func startFile(path, arguments string) (string, error) {
	cmd := exec.Command(path, strings.Fields(arguments)...)
	cmd.Env = append(os.Environ(), childVariable+"=1", "GORACE=atexit_sleep_ms=0")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// ends runs a program, which has to succeed and to leave all blocks whole, and returns its output.
func ends(t *testing.T, arguments string) string {
	t.Helper()
	return endsFile(t, os.Args[0], arguments)
}

func endsFile(t *testing.T, path, arguments string) string {
	t.Helper()
	out, err := startFile(path, arguments)
	require.NoError(t, err, "%s: %s", arguments, out)
	require.Contains(t, out, "walk 0\nanswer 0\n", arguments)
	return out
}

// numbers returns the numbers of the line that begins with a word.
func numbers(t *testing.T, out, word string) (list []uint64) {
	t.Helper()
	line := regexp.MustCompile(`(?m)^` + word + ` .*$`).FindString(out)
	require.NotEmpty(t, line, out)
	for _, n := range regexp.MustCompile(`\d+`).FindAllString(line, -1) {
		number, err := strconv.ParseUint(n, 10, 64)
		require.NoError(t, err)
		list = append(list, number)
	}
	return list
}

// few returns n, or less in a build with slower checks.
func few(n int) int {
	if arena_c.Checked {
		return n / 20
	}
	if arena_c.Race {
		return n / 4
	}
	return n
}

// needsMalloc skips t in the asan build.
func needsMalloc(t *testing.T) {
	t.Helper()
	if arena_c.Asan {
		t.Skip("an asan build has AddressSanitizer's malloc: go test ./tests/malloc runs it")
	}
}

// TestStress: threads free the blocks of others, and all come back.
func TestStress(t *testing.T) {
	t.Parallel()
	needsMalloc(t)
	steps, most, size := few(step.Pick(30_000, 300_000, 10_000_000)), 1<<20, "512MiB"
	if arena_c.Checked { // a new heap is filled
		most, size = 100_000, "32MiB"
	}
	for _, threads := range []int{1, 4, 16} {
		for _, fronts := range []int{1, 0} {
			assertFree(t,
				ends(t, fmt.Sprintf("-size %s -fronts %d stress %d %d %d", size, fronts, threads, steps, most)))
		}
	}
}

// assertFree: the program's blocks are free. Some are libc's: of threads that have ended, and of
// Go's threads.
func assertFree(t *testing.T, out string) {
	t.Helper()
	n := numbers(t, out, "size")
	assert.Less(t, n[2], uint64(40), "live: %s", out)
	assert.Less(t, n[1], uint64(40<<10), "used: %s", out)
}

// TestModel compares each function with a plain model, in the static heap, in a heap that is full
// most of the time, and in a large one.
func TestModel(t *testing.T) {
	t.Parallel()
	needsMalloc(t)
	steps := few(step.Pick(20_000, 200_000, 3_000_000))
	for seed := range step.Pick(2, 4, 20) {
		ends(t, fmt.Sprintf("model %d %d %d", steps, 9000, seed))
		ends(t, fmt.Sprintf("-size 300KiB model %d %d %d", steps, 9000, seed))
		assertFree(t, ends(t, fmt.Sprintf("-size 32MiB -reserve 1MiB model %d %d %d", steps, 100_000, seed)))
	}
}

// TestShort runs the model with each number of free bytes, so that each request is the first that
// doesn't fit.
func TestShort(t *testing.T) {
	t.Parallel()
	needsMalloc(t)
	most := few(step.Pick(1000, 4000, 60_000))
	out := ends(t, fmt.Sprintf("-size 400KiB short %d", most))
	assert.Greater(t, numbers(t, out, "size")[3], uint64(100), "refused requests: %s", out)
	assertFree(t, out)
	ends(t, fmt.Sprintf("short %d", most))
}

func TestEdges(t *testing.T) {
	t.Parallel()
	needsMalloc(t)
	ends(t, "-size 8MiB edges")
	ends(t, "edges")
	ends(t, "-size 8MiB libc")
	ends(t, "-size 8MiB exec")
}

func TestFork(t *testing.T) {
	t.Parallel()
	needsMalloc(t)
	ends(t, fmt.Sprintf("-size 8MiB fork %d", step.Pick(20, 100, 2000)))
	ends(t, "fork 5")
}

// TestFull: a full heap has as many blocks again after a free of all, and the reserve is for
// clean-ups alone. The static heap names the key that the plan lacks, once.
func TestFull(t *testing.T) {
	t.Parallel()
	needsMalloc(t)
	for _, size := range []int{16, 100, 1024, 1025, 5000, 100_000} {
		out := ends(t, fmt.Sprintf("-size 4MiB fill %d", size))
		n := numbers(t, out, "blocks")
		assert.Greater(t, n[0], uint64((4<<20)*9/10/(size+32)), out)
		assert.Equal(t, n[0], n[1], out)
		assert.Less(t, numbers(t, out, "caller")[0], uint64(300), "after the start of work_fill: %s", out)
		lines := regexp.MustCompile(`(?m)^upfront: .*`).FindAllString(out, -1)
		require.Len(t, lines, 2, out)
		line := fmt.Sprintf(`: a request of %d bytes, and \d+ of 4106240 bytes of c_heap are used; set c_heap to 8MiB; the caller is \S+, from Go at main.go:\d+ < main.go:\d+.*; the profile's largest users: main.go:\d+ \(\d+KiB\)`,
			size)
		assert.Regexp(t, `^upfront: C's malloc is full`+line, lines[0])
		assert.Regexp(t, `^upfront: C's malloc is full \(2 refusals\)`+line, lines[1])
		assert.Equal(t, uint64(2), numbers(t, out, "size")[3], "fulls: %s", out)
		assertFree(t, out)
	}

	out := ends(t, "-size 4MiB -reserve 1MiB lend 3000")
	n := numbers(t, out, "blocks")
	assert.InDelta(t, (3<<20-64<<10-22528)/3016, n[0], 12, out)
	assert.InDelta(t, (4<<20-64<<10-22528)/3016, n[1], 12, out)
	assert.Regexp(t,
		`full: a request of 3000 bytes, and \d+ of 4106240 bytes of c_heap are used, with 1048576 in reserve; set`, out)
	assert.Regexp(t, `full \(2 refusals\): a request of 3000 bytes, and \d+ of 4106240 bytes of c_heap are used`+
		`(, and the free ones are in smaller pieces)?; set`, out, "between blocks that a front had")
	assert.Equal(t, n[0], n[2], out)
	assert.Contains(t, out, "of the function\n")
	assert.Equal(t, uint64(4), numbers(t, out, "size")[3], "fulls: %s", out)
	assert.Equal(t, 3, strings.Count(out, "upfront:"), "the first, the second and the fourth: %s", out)

	out = ends(t, "fill 5000")
	assert.Equal(t, 1, strings.Count(out, "upfront: C's malloc is full: a request of 5000 bytes"), out)
	assert.Contains(t, out, "of 1048576 bytes of the static heap are used. The plan has no \"c_heap\", or isn't "+
		"open yet")
}

// TestLarge: a request that is larger than the heap isn't a full, nor is an alignment that no heap
// has. A probe has no line.
func TestLarge(t *testing.T) {
	t.Parallel()
	needsMalloc(t)
	out := ends(t, "-size 4MiB fill 5000000")
	assert.Regexp(t,
		`(?m)^upfront: C's malloc refuses a request of 5000000 bytes, more than all 4106240 bytes of c_heap; set c_heap to 9MiB, or ask for less; the caller is `,
		out)
	assert.Equal(t, 1, strings.Count(out, "upfront:"), out)
	assert.Equal(t, uint64(0), numbers(t, out, "size")[3], "fulls: %s", out)
	lines := regexp.MustCompile(`(?m)^upfront: .*`).FindAllString(ends(t, "-size 4MiB edges"), -1)
	require.Len(t, lines, 1)
	assert.Regexp(t, `^upfront: C's malloc refuses an alignment of 2097152: the largest is 1048576; the caller is `,
		lines[0])
}

// TestRuntime: in a full heap Go's runtime gets its requests, and C's own code doesn't get a byte
// for them. They come back.
func TestRuntime(t *testing.T) {
	t.Parallel()
	needsMalloc(t)
	requestsOf(t, os.Args[0])
	for range step.Pick(1, 3, 100) {
		for _, c := range []string{"-size 4MiB requests 10 50 20", "requests 10 50 20",
			"-size 4MiB -runtime 512KiB requests 10 1000", "-size 4MiB calls 200"} {
			ends(t, c)
		}
	}
}

func requestsOf(t *testing.T, path string) {
	t.Helper()
	n := numbers(t, endsFile(t, path, "-size 4MiB requests 1000 0 20"), "runtime")
	assert.Greater(t, n[1], uint64(1000))
	assert.Less(t, n[2], n[0]+2000, "some bytes for a thread that the runtime started")
	n = numbers(t, endsFile(t, path, "-size 4MiB requests 10 50"), "runtime")
	assert.Greater(t, n[1], uint64(12_000), "of 50 threads")
	assert.Equal(t, uint64(65536), n[3])
}

// TestRuntimeIsFull: when its part is full, too, the line comes before Go's own.
func TestRuntimeIsFull(t *testing.T) {
	t.Parallel()
	needsMalloc(t)
	out, err := start("-size 4MiB -runtime 4KiB requests 10 100")
	assert.Error(t, err)
	assert.Regexp(t,
		`(?s)upfront: C's malloc is full: a request of \d+ bytes, and \d+ of 4096 bytes of c_heap.runtime, the part for Go's runtime, are used; `+`set c_heap.runtime to 8KiB; the caller is .*(runtime/cgo: |SIGABRT)`,
		out)
}

// TestClosed: a full heap writes nothing into a file that took the place of standard error.
func TestClosed(t *testing.T) {
	t.Parallel()
	needsMalloc(t)
	file := filepath.Join(t.TempDir(), "file")
	out := ends(t, "-size 4MiB closed "+file)
	assert.Greater(t, numbers(t, out, "size")[3], uint64(10), "fulls: %s", out)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Empty(t, string(text))
}

// TestLines: C reads the names and lines of Go's functions as package runtime does.
func TestLines(t *testing.T) {
	t.Parallel()
	needsMalloc(t)
	assert.Greater(t, numbers(t, ends(t, "lines"), "lines")[0], uint64(10_000))
}

// TestWarn: C's heap warns without a frame or a load. Freed blocks in fronts don't count.
func TestWarn(t *testing.T) {
	t.Parallel()
	needsMalloc(t)
	out := ends(t, "warn")
	assert.Contains(t, out, "below 0\n")
	assert.Len(t,
		regexp.MustCompile(`(?m)^c_heap holds 2\d{6} of 4128768 bytes, and warns at 50%; its size is c_heap in the plan$`).FindAllString(out,
			-1), 3, out)
	assert.Contains(t, out, "warnings 3 0\n")
	assert.Regexp(t,
		`c_heap: full \d+ times; the last: budget "pond": C's malloc is full: 500 bytes asked by 0x[0-9a-f]+, from Go at \S+tests/malloc.warn \S+runtime.go:\d+; \d+ of 4128768 were free`,
		out)
}

// TestMisuse: each misuse is a line with the call, the reason and the caller, and ends the process.
func TestMisuse(t *testing.T) {
	t.Parallel()
	needsMalloc(t)
	const (
		double = "the block is free already"
		none   = "no block starts at the address, or a write changed the header before it"
		write  = "a write past a block of C's malloc, or after its free, changed the bytes at 0x"
	)
	for name, want := range map[string]string{
		"double":       "free of 0x[0-9a-f]+: " + double,
		"double-large": "free of 0x[0-9a-f]+: " + double,
		"foreign":      "free of 0x[0-9a-f]+: the address isn't in C's heap",
		"inside":       "free of 0x[0-9a-f]+: " + none,
		"uneven":       "free of 0x[0-9a-f]+: " + none,
		"realloc":      "realloc of 0x[0-9a-f]+: " + double,
		"size":         "malloc_usable_size of 0x[0-9a-f]+: " + double,
		"header":       "free of 0x[0-9a-f]+: " + none,
		"past":         write,
		"freed":        write,
	} {
		for _, size := range []string{"", "-size 8MiB "} {
			out, err := start(size + "misuse " + name)
			assert.Error(t, err, "%s%s: %s", size, name, out)
			assert.Regexp(t, `(?m)^upfront: BUG: `+want, out, "%s%s", size, name)
			assert.Regexp(t, `(the caller is at|a call from) 0x[0-9a-f]+`, out)
			// Go reports the signal, unless it arrives on a thread without a goroutine.
			assert.Regexp(t, "SIGABRT|aborted", out+fmt.Sprint(err), "%s%s", size, name)
			if !arena_c.Checked { // a checked build looks when the freed block has rested
				assert.NotContains(t, out, "went on", "the call finds it, not a later one")
			}
		}
	}
	for _, size := range []string{"", "-size 8MiB "} {
		ends(t, size+"misuse right")
		out, err := start(size + "misuse byte")
		if arena_c.Checked {
			assert.Error(t, err)
			assert.Regexp(t, write+`.*a block of 40 bytes at 0x`, out)
		} else {
			assert.Contains(t, out, "answer -1", "the byte is past the requested size, and the block has it")
		}
	}
}

// TestTrim: free pages go back when they are asked for, and when the thread has seen them free.
func TestTrim(t *testing.T) {
	t.Parallel()
	needsMalloc(t)
	out := ends(t, "-size 64MiB trim 3000 10000 0")
	assert.Equal(t, []uint64{0}, numbers(t, out, "again"), out)
	n := numbers(t, out, "resident")
	if arena_c.Checked {
		assert.Equal(t, []uint64{0, 0}, n[3:], "freed bytes are checked: %s", out)
		return
	}
	assert.Greater(t, n[1], uint64(29<<20), out)
	assert.Greater(t, n[3], uint64(28<<20), out)
	assert.Less(t, n[2], n[1]-(28<<20), out)
	assert.Equal(t, n[3], n[4], out)

	n = numbers(t, ends(t, "-size 64MiB -trim 10ms trim 3000 10000 1"), "resident")
	assert.Greater(t, n[3], uint64(28<<20), out)
	assert.Less(t, n[2], n[1]-(28<<20), out)

	n = numbers(t, ends(t, "trim 20 10000 0"), "resident")
	assert.Equal(t, []uint64{0, 0}, n[3:], "the static heap stays")
}

// TestAsan: the program works in AddressSanitizer's malloc, and c_heap bounds nothing.
func TestAsan(t *testing.T) {
	t.Parallel()
	if !arena_c.Asan {
		t.Skip("other builds have the package's malloc: go test -asan ./tests/malloc runs it")
	}
	assert.Contains(t, ends(t, "-size 8MiB libc"), "size 0 used 0")
}

// TestTrimFlushes: Trim merges the blocks in fronts first.
func TestTrimFlushes(t *testing.T) {
	t.Parallel()
	needsMalloc(t)
	n := numbers(t, ends(t, "-size 8MiB split"), "trimmed")
	if arena_c.Checked {
		assert.Zero(t, n[0])
		return
	}
	assert.Greater(t, n[0], uint64(700<<10))
}

// TestTrimWaits: a look gives back the pages that the look before saw free. There is more to do
// after the next free.
func TestTrimWaits(t *testing.T) {
	t.Parallel()
	needsMalloc(t)
	out := ends(t, "-size 64MiB looks")
	assert.Contains(t, out, "goes on false\n")
	n := numbers(t, out, "looks")
	if arena_c.Checked {
		assert.Equal(t, make([]uint64, 6), n)
		return
	}
	assert.Zero(t, n[0])
	assert.Greater(t, n[1], uint64(9<<20))
	assert.Equal(t, n[1], n[2])
	assert.Equal(t, n[1], n[3])
	assert.Greater(t, n[5], n[1]+9<<20)
}

// TestFrontsAreBounded: of many freed blocks a front keeps 256 at most.
func TestFrontsAreBounded(t *testing.T) {
	t.Parallel()
	needsMalloc(t)
	n := numbers(t, ends(t, "-size 64MiB -fronts 1 parks"), "parked")
	if arena_c.Checked {
		assert.Zero(t, n[0], "freed blocks are checked in the heap")
		return
	}
	assert.LessOrEqual(t, n[0], uint64(256))
	assert.Greater(t, n[0], uint64(100))
	assert.Less(t, n[1], uint64(50), "a refusal merges them; Go's threads may free some since")
	assert.Greater(t, n[2], uint64(256<<10/4112/2), "large blocks of a size that was asked for")
	assert.LessOrEqual(t, n[2], uint64(256<<10/4112+50), "256 KiB in large blocks, and some small ones")
	assert.Less(t, n[3], uint64(50), "large blocks of sizes that weren't asked for since")
}

// TestStaticBlocksMove: blocks from before Open keep their contents, and leave the static heap when
// they grow or are freed.
func TestStaticBlocksMove(t *testing.T) {
	t.Parallel()
	needsMalloc(t)
	ends(t, "moves")
}

// goBuild builds this program with more flags.
func goBuild(t *testing.T, flags ...string) string {
	t.Helper()
	path := t.TempDir() + "/malloc"
	cmd := exec.Command("go", append(append([]string{"build", "-o", path}, flags...), ".")...)
	var text bytes.Buffer
	cmd.Stderr = &text
	require.NoError(t, cmd.Run(), "%s", &text)
	return path
}

// TestStatic: a static program has the malloc.
func TestStatic(t *testing.T) {
	t.Parallel()
	step.Needs(t, step.Gate)
	if arena_c.Race || arena_c.Asan {
		t.Skip("one build is enough: UPFRONT_STEP=gate go test ./tests/malloc runs it")
	}
	path := goBuild(t, "-ldflags", `-linkmode external -extldflags "-static"`)
	text, err := exec.Command("ldd", path).CombinedOutput()
	assert.Contains(t, string(text), "not a dynamic executable", err)
	for _, program := range []string{"-size 64MiB stress 4 20000 100000", "-size 8MiB edges", "-size 8MiB fork 10",
		"edges", "-size 64MiB -trim 10ms trim 3000 10000 1", "-size 64MiB -profile 16KiB stress 4 20000 100000",
		"-size 8MiB -profile 16KiB fork 10", "-size 64MiB -profile 16KiB child",
		"-size 64MiB -profile 16KiB shared-ends"} {
		endsFile(t, path, program)
	}
	requestsOf(t, path)
	usersOf(t, path)
	out, _ := startFile(path, "-size 8MiB misuse double")
	assert.Contains(t, out, "upfront: BUG: free of 0x")
}

// usersOf checks the lines of the program users, and returns all stacks.
func usersOf(t *testing.T, path string) (traces string) {
	t.Helper()
	file := t.TempDir() + "/users.pb.gz"
	endsFile(t, path, "-size 64MiB -profile 16KiB users "+file)
	text, err := os.ReadFile("profile.go")
	require.NoError(t, err)
	line := func(mark string) int {
		return 1 + strings.Count(strings.Split(string(text), " // line "+mark)[0], "\n")
	}
	tool := func(args ...string) string {
		cmd := exec.Command("go", append([]string{"tool", "pprof"}, append(args, file)...)...)
		cmd.Env = append(os.Environ(), "PPROF_TMPDIR="+t.TempDir())
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	// a test's package main has the path of its folder
	_, top, _ := strings.Cut(tool("-top", "-lines", `-show=^(main|.*/tests/malloc)\.`), "cum%\n")
	lines := strings.Split(top, "\n")
	require.Greater(t, len(lines), 3, top)
	assert.Regexp(t, fmt.Sprintf(`\.large \S+/profile\.go:%d( \(inline\))?$`, line("MALLOC")), lines[0])
	assert.Regexp(t, fmt.Sprintf(`\.users \S+/profile\.go:%d( \(inline\))?$`, line("SMALL")), lines[1])
	traces = tool("-traces")
	assert.Regexp(t, regexp.MustCompile(`(?s)C\.malloc\n.*\.large.*\n\s+\S+\.users\n.*\.run\n.*\.main\n`), traces)
	return traces
}

// TestBuilds: a position-independent and a stripped program know the requests of Go's runtime.
func TestBuilds(t *testing.T) {
	t.Parallel()
	step.Needs(t, step.Gate)
	if arena_c.Race || arena_c.Asan {
		t.Skip("one build is enough: UPFRONT_STEP=gate go test ./tests/malloc runs it")
	}
	for _, flags := range [][]string{{"-buildmode=pie"}, {"-ldflags=-s -w"},
		{"-buildmode=pie", "-ldflags=-s -w -linkmode external -extldflags=-static-pie"}} {
		path := goBuild(t, flags...)
		requestsOf(t, path)
		endsFile(t, path, "lines")
		endsFile(t, path, "-size 4MiB -profile 16KiB calls 200")
		usersOf(t, path)
	}
}

// TestMusl: so does a static program with musl, whose threads take no memory of malloc.
func TestMusl(t *testing.T) {
	step.Needs(t, step.Gate)
	if arena_c.Race || arena_c.Asan {
		t.Skip("one build is enough: UPFRONT_STEP=gate go test ./tests/malloc runs it")
	}
	if _, err := exec.LookPath("musl-gcc"); err != nil {
		step.Lacks(t, "musl-gcc", "musl-tools")
	}
	t.Setenv("CC", "musl-gcc")
	path := goBuild(t, "-ldflags", `-linkmode external -extldflags "-static"`)
	for _, program := range []string{"-size 4MiB requests 100 50", "requests 10 50", "-size 4MiB calls 200", "lines",
		"-size 8MiB fork 10", "-size 8MiB edges", "warn", "-size 64MiB -profile 16KiB stress 4 20000 100000",
		"-size 64MiB -profile 16KiB shared-ends"} {
		endsFile(t, path, program)
	}
	usersOf(t, path)
}
