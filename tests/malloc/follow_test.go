//go:build linux && cgo

package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/tests/step"
)

// TestFollowsALimit: in a cgroup whose limit falls from 512 MiB to 256 and rises to 1024, the
// collector's limit follows. The program has garbage, C's heap, a region and freed parts of huge
// pages meanwhile, isn't ended, and collects no more often than its garbage needs. The limit also
// follows while the program has no free file descriptor.
func TestFollowsALimit(t *testing.T) {
	step.Needs(t, step.Check)
	if arena_c.Race || arena_c.Asan || arena_c.Checked {
		t.Skip("instrumented builds need more than the plan's bytes: UPFRONT_STEP=check go test ./tests/malloc runs it")
	}
	const MiB = budget.MiB
	group, why := step.MemoryGroup(512 * MiB)
	if why != "" {
		t.Skip(step.Unproven + why)
	}
	defer func() { assert.NoError(t, os.Remove(group)) }()
	cmd := exec.Command("sh", "-c", `echo $$ >"$0/cgroup.procs" && ulimit -n 40 && exec "$@"`, group, os.Args[0],
		"follow")
	cmd.Env = append(os.Environ(), childVariable+"=1", "GOMEMLIMIT=off")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	pipe, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, step.Start(cmd))
	defer func() {
		_ = cmd.Process.Kill() // if the test has failed
		_ = cmd.Wait()
	}()
	out := bufio.NewReader(pipe)
	reply := func(word string) (first, second uint64) {
		line, err := out.ReadString('\n')
		require.NoError(t, err, "killed? %s", line)
		if word != "quiet" {
			list := numbers(t, line, word)
			first, second = list[0], list[len(list)-1]
		}
		return first, second
	}
	tell := func(text string, args ...any) {
		_, err := fmt.Fprintf(in, text+"\n", args...)
		require.NoError(t, err)
	}
	limit, share := reply("limit") // the runtime's, and the Go heap's in the report
	// garbage allocates bytes. It expects no more collections than their number and the limit need:
	// the room above the live heap, divided by 3, is for each. With a limit at the live heap the
	// collector would run for each few KiB.
	garbage := func(bytes uint64) (used uint64) {
		tell("garbage %d", bytes)
		count, used := reply("collections")
		room := limit - followLive - 16*MiB // with the runtime's own memory, and its margin
		assert.LessOrEqual(t, count, 3*bytes/room+4, "limit %d", limit)
		t.Logf("Go's limit is %d KiB: %d MiB of garbage, %d collections, %d KiB used", limit/budget.KiB, bytes/MiB,
			count, used/budget.KiB)
		return used
	}
	move := func(to uint64) {
		tell("moved %d", limit)
		begin := time.Now()
		require.NoError(t, step.SetGroupLimit(group, to))
		before := limit
		limit, share = reply("limit")
		assert.Equal(t, limit, share)
		t.Logf("%d MiB: Go's limit followed after %v", to/MiB, time.Since(begin))
		require.NotEqual(t, before, limit)
	}
	first := share
	assert.Greater(t, garbage(1024*MiB), uint64(256*MiB), "the limit allows it")
	swaps, err := os.ReadFile("/proc/swaps")
	if step.GroupVersion(group) == 1 && err == nil && strings.Count(string(swaps), "\n") == 1 {
		err = step.SetGroupLimit(group, followRegion+followInC)
		assert.ErrorIs(t, err, syscall.EBUSY, "less than the program holds")
		t.Log("the kernel has refused a limit below the use")
	}
	tell("quiet") // else the kernel refuses the limit, or ends the program
	reply("quiet")
	move(256 * MiB)
	second := share
	assert.Less(t, limit, uint64(256*MiB-followRegion-followCHeap))
	const reserve, outside = 16 * MiB, 20 * MiB
	assert.Greater(t, limit, uint64(256*MiB-followRegion-followCHeap-reserve-outside), "each part counts once")
	assert.Less(t, garbage(2048*MiB), uint64(256*MiB))
	move(1024 * MiB)
	assert.Greater(t, limit, uint64(1024*MiB-followRegion-followCHeap-64*MiB))
	assert.Greater(t, garbage(1024*MiB), uint64(256*MiB))
	third := share
	tell("full")
	count, _ := reply("full")
	t.Logf("%d files more, and no file descriptor is free", count)
	tell("quiet")
	reply("quiet")
	move(384 * MiB)
	fourth := share
	assert.Less(t, limit, uint64(384*MiB-followRegion-followCHeap))
	assert.Greater(t, limit, uint64(384*MiB-followRegion-followCHeap-reserve-outside))
	tell("free")
	tell("moved %d", limit)
	limit, share = reply("limit")
	t.Logf("Go's limit is %d KiB without file descriptors, and %d KiB with", fourth/budget.KiB, limit/budget.KiB)
	assert.InDelta(t, fourth, limit, outside)
	require.NoError(t, in.Close())
	var text strings.Builder
	_, err = out.WriteTo(&text)
	require.NoError(t, err)
	require.NoError(t, cmd.Wait(), text.String())
	for _, step := range []struct{ from, to, was, is uint64 }{
		{512 * MiB, 256 * MiB, first, second}, {256 * MiB, 1024 * MiB, second, third},
		{1024 * MiB, 384 * MiB, third, fourth},
	} {
		size := budget.SizeText
		assert.Regexp(t, fmt.Sprintf(`(?m)^  Go heap: \S+Z cgroup .*%s -> %s.*: limit %s -> %s$`, size(step.from),
			size(step.to), size(step.was), size(step.is)), text.String())
	}
	assert.Regexp(t, fmt.Sprintf(`(?m)^  Go heap: \S+Z the use of cgroup .* can be read again: limit %s -> %s$`,
		budget.SizeText(fourth), budget.SizeText(share)), text.String())
	t.Log(text.String())
}
