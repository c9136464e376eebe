package budget_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/platform"
	"github.com/upfront-mem/upfront/scope"
)

const (
	baseChild = "UPFRONT_BASE_CHILD" // the base for a run of this test as a child
	baseRuns  = 3
)

func printAddresses(t *testing.T, plan budget.Plan) {
	b := open(t, plan)
	for _, line := range b.Report().NotGranted {
		fmt.Println("refused", line)
	}
	base := addressOf(&b.Base().Bytes()[0])
	fmt.Printf("address base %x\n", base)
	at := func(what string, place uint64) { fmt.Printf("address %s %x\n", what, uint64(base)+place) }
	room := acquire(t, b)
	for range 2 {
		mustLoad(t, b, "systems", func(s scope.Scope) {
			at("mark", placeOf(b, newMark(s, 1, 0)))
			at("temp", placeOf(b, &s.Temp(5000).Bytes(5000)[0]))
			pool := func(s scope.Scope) { at("pool", placeOf(b, frogs.Pool(s, 9).Get())) }
			at("level", placeOf(b, mustLoadRegion(t, b.Region("level").In(s), pool).Get()))
		})
		_, err := load(b, "level", func(scope.Scope) error { return errLoader })
		require.ErrorIs(t, err, errLoader)
		at("level again", placeOf(b, mustLoad(t, b, "level", nil).Get()))
		at("room", placeOf(b, mustFill(t, room, 1).Get()))
		at("frame", placeOf(b, frogs.New(b.Frame())))
		s := b.Scratch(0, 1).Open("query")
		at("scratch", placeOf(b, frogs.New(s)))
		require.NoError(t, s.Close())
	}
	require.NoError(t, room.Release(background))
	require.NoError(t, b.Close())
}

// runsAt starts this test three times, in environments of different lengths, and returns the
// outputs.
func runsAt(t *testing.T, base uint64) (addresses, refusals []string) {
	t.Helper()
	for i := range baseRuns {
		command := exec.Command(os.Args[0], "-test.run=^TestAddressesInEveryRun$")
		command.Env = append(os.Environ(), fmt.Sprintf("%s=%d", baseChild, base),
			"LONGER="+strings.Repeat("x", 10_000*i))
		output, err := command.CombinedOutput()
		if errors.Is(err, syscall.ENOEXEC) {
			t.Skip("the emulator starts no programs; on a machine of this target, go test ./budget runs it:", err)
		}
		require.NoError(t, err, "%s", output)
		var list, refused strings.Builder
		for line := range strings.Lines(string(output)) {
			if strings.HasPrefix(line, "address ") {
				list.WriteString(line)
			} else if strings.HasPrefix(line, "refused ") {
				refused.WriteString(line)
			}
		}
		require.Equal(t, 2*(1+2*8), strings.Count(list.String(), "\n"), "%s", output)
		addresses, refusals = append(addresses, list.String()), append(refusals, refused.String())
	}
	return addresses, refusals
}

// TestAddressesInEveryRun: with a base, a budget has the same addresses in every run and after a
// second Open, or the report has a line that the base wasn't granted. Without a base each run
// differs.
func TestAddressesInEveryRun(t *testing.T) {
	if text := os.Getenv(baseChild); text != "" {
		plan := budget.Plan{Name: "base", Regions: []budget.RegionPlan{{Name: "systems", Size: 256 * budget.KiB},
			{Name: "level", Size: 512 * budget.KiB}, {Name: "room", Size: 128 * budget.KiB, Slots: 3}},
			Frame:   budget.FramePlan{Buffers: 2, Size: 64 * budget.KiB},
			Scratch: budget.ScratchPlan{Workers: 1, Size: 64 * budget.KiB}}
		_, err := fmt.Sscan(text, &plan.Base)
		require.NoError(t, err)
		printAddresses(t, plan)
		printAddresses(t, plan)
		return
	}
	base := uint64(platform.SafeBase())
	if base == 0 {
		_, refusals := runsAt(t, 1<<30)
		for _, refused := range refusals {
			assert.Regexp(t,
				`^(refused pages\.base: platform: reserve \d+ bytes at 0x40000000: unsupported operation( on \w+|: .+)\n){2}$`,
				refused)
		}
		return
	}
	addresses, refusals := runsAt(t, base)
	assert.Equal(t, []string{"", "", ""}, refusals)
	assert.True(t, strings.HasPrefix(addresses[0], fmt.Sprintf("address base %x\n", base)), addresses[0])
	half := len(addresses[0]) / 2
	assert.Equal(t, addresses[0][:half], addresses[0][half:], "the second Open")
	for _, list := range addresses[1:] {
		assert.Equal(t, addresses[0], list)
	}
	random, err := os.ReadFile("/proc/sys/kernel/randomize_va_space")
	flags, flagsErr := os.ReadFile("/proc/self/personality")
	const noRandomize = 0x0040000
	var personality uint64
	_, _ = fmt.Sscanf(string(flags), "%x", &personality)
	if err != nil || flagsErr != nil || strings.TrimSpace(string(random)) == "0" || personality&noRandomize != 0 {
		t.Log("no control: the system doesn't move what a program maps")
		return
	}
	addresses, _ = runsAt(t, 0)
	assert.False(t, addresses[0] == addresses[1] && addresses[1] == addresses[2],
		"control: without a base they are elsewhere")
}
