package budget

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func undraw(t *testing.T, text string) float64 {
	t.Helper()
	require.True(t, strings.HasSuffix(text, "KiB"), text)
	size, err := strconv.ParseFloat(strings.TrimSuffix(text, "KiB"), 64)
	require.NoError(t, err, text)
	return size
}

// requireDrawn compares the drawing of a valid plan with the plan. The lines add up to the whole,
// as rounded. Each bar begins where the bar before it ended, or where at least one character has
// room.
func requireDrawn(t *testing.T, plan Plan) {
	t.Helper()
	text := plan.String()
	lines := strings.Split(text, "\n")
	name, whole, found := strings.Cut(strings.TrimPrefix(lines[0], "plan "), ": ")
	require.True(t, found, text)
	require.Equal(t, plan.Name, name)
	resolved := plan.resolved()
	l, err := resolved.layout()
	if err != nil && strconv.IntSize == 32 {
		return // this target lacks the addresses
	}
	require.NoError(t, err)
	require.EqualValues(t, l.size/KiB, undraw(t, whole), "as the cost's addresses: %s", text)
	require.Contains(t, text, "\n  cost: "+whole+" of addresses,")

	sum, end, drawn, cells := 0.0, 0, 0, 0
	for _, line := range lines[1:] {
		if !strings.HasPrefix(line, "  warning: ") && !strings.HasPrefix(line, "    ") { // a note
			require.LessOrEqual(t, utf8.RuneCountInString(line), planWidth, line)
		}
		if strings.HasPrefix(line, "  Go heap ") || strings.HasPrefix(line, "  limits of each arena:") {
			break
		}
		if strings.HasPrefix(line, "    ") { // more of the line before
			continue
		}
		words := strings.Fields(line)
		sum += undraw(t, words[1])
		if len(words) > 2 && words[2][0] == '[' && strings.Contains(words[2], "#") {
			bar := words[2]
			cells = len(bar) - 2
			require.LessOrEqual(t, cells, planBar, text)
			from, to := strings.Index(bar, "#")-1, strings.LastIndex(bar, "#")
			require.True(t, from == end || from == end-1, text)
			require.Equal(t, to-from, strings.Count(bar, "#"), text)
			end = to
			drawn++
		}
	}
	require.InDelta(t, undraw(t, whole), sum, float64(len(lines)), "each line is rounded up: %s", text)
	require.GreaterOrEqual(t, sum, undraw(t, whole), text)
	require.Equal(t, cells, end, text)
	require.GreaterOrEqual(t, drawn, len(plan.Regions))
}

func TestPlanIsDrawn(t *testing.T) {
	plan := Plan{
		Name: "server",
		Size: 128 * MiB,
		Base: 0x200000000000,
		Regions: []RegionPlan{
			{Name: "init", Size: 4 * MiB},
			{Name: "systems", Size: 12*MiB + 77},
			{Name: "match", Size: 2 * MiB, Slots: 16, Note: "largest room + 10 %"},
			{Name: "one", Size: 64 * KiB, Slots: 1},
			{Name: "level", Size: Rest, Note: "largest\nmap"},
		},
		Frame:   FramePlan{Buffers: 2, Size: MiB},
		Scratch: ScratchPlan{Workers: 1, Size: MiB},
		Limits:  Limits{Pools: 7},
		Pages:   Pages{Lock: Required, Guards: Wished},
		GoHeap:  32 * MiB,
	}
	assert.Equal(t, `plan server: 131264KiB
  tables     128KiB  [#...................]
  init      4096KiB  [#...................]  regions[0]
  systems  12289KiB  [.##.................]  regions[1]
  match    32768KiB  [...#####............]  regions[2]  16 slots of 2048KiB
    16 scopes, 32 owned values, 8 labels  largest room + 10 %
  one         64KiB  [........#...........]  regions[3]  1 slot of 64KiB
    16 scopes, 32 owned values, 8 labels
  level    76160KiB  [........###########.]  regions[4]  the rest  largest`+"\ufffd"+`map
  frame     2048KiB  [...................#]  2 buffers of 1024KiB
  scratch   2048KiB  [...................#]  1 worker x 2 arenas of 1024KiB
  guards    1600KiB  25 guards of 64KiB
  edges       64KiB  up to multiples of 64KiB
  Go heap  32768KiB  outside it
  limits of each arena: 64 scopes, 7 pools, 256 owned values, 32 labels
  pages: prefault wished, lock required, huge off, guards wished,
    base wished at 0x200000000000
  cost: 131264KiB of addresses,
    129596KiB resident at most (pages of 64 KiB: 129664KiB), Go heap 32768KiB
  resident from Open on
  warning: regions[3]: each Load, Rewind or Release of a slot of "match" also empties all slots of "one"; list "one" before "match", or set its on
  warning: regions[4]: each Load, Rewind or Release of a slot of "one" also empties "level"; list "level" before "one", or set its on
`, plan.String())

	assert.Equal(t, `plan x: 1088KiB
  tables      64KiB  [#...................]
  a          0.1KiB  [.#..................]  regions[0]
  edges       64KiB  up to multiples of 64KiB
  unplanned  960KiB  [..##################]  size
  limits of each arena: 64 scopes, 64 pools, 256 owned values, 32 labels
  pages: prefault wished, lock off, huge off, guards off, base off
  cost: 1088KiB of addresses, 20KiB resident at most (pages of 64 KiB: 128KiB),
    Go heap 64KiB
  resident from Open on
`, Plan{Name: "x", Size: MiB, Regions: []RegionPlan{{Name: "a", Size: 8}}}.String())
	assert.Contains(t, Plan{Name: "x", Regions: []RegionPlan{{Name: "a", Size: 8}},
		Pages: Pages{Prefault: Off}}.String(), "\n  resident when touched\n")
}

// The drawing of a faulty plan is one line that can't disturb a terminal.
func TestFaultyPlanIsDrawn(t *testing.T) {
	assert.Equal(t, "plan \"\": 2 errors (Check names them)\n", Plan{Base: 1}.String())
	assert.Equal(t, "plan \"\": 1 error (Check names them)\n", Plan{}.String())
	random := rand.New(rand.NewPCG(9, 10))
	number := func() uint64 { return random.Uint64() >> random.IntN(64) << random.IntN(64) }
	count := func() int { return int(number()) }
	word := func() string {
		letters := []string{"a", "\x00", "\n", "é", "\xff", "\u202e", " ", strings.Repeat("x", 50)}
		return letters[random.IntN(8)] + letters[random.IntN(8)]
	}
	demand := func() Demand { return Demand(word()) }
	for range 3_000 {
		plan := Plan{Name: word(), Size: number(), Base: number(), Frame: FramePlan{count(), number()},
			Scratch: ScratchPlan{count(), count(), number()},
			Limits:  Limits{count(), count(), count(), count()}, GoHeap: number(),
			Pages: Pages{demand(), demand(), demand(), demand(), demand()}}
		for range random.IntN(5) {
			region := RegionPlan{Name: word(), Size: number(), Slots: count(), State: count() == 1, Note: word()}
			if random.IntN(3) == 0 {
				region.Size = Rest
			}
			plan.Regions = append(plan.Regions, region)
		}
		text := plan.String()
		require.True(t, utf8.ValidString(text))
		require.Equal(t, -1, strings.IndexFunc(text, func(char rune) bool {
			return char != '\n' && !unicode.IsPrint(char)
		}), "%q", text)
		require.Equal(t, plan.check() != nil, strings.HasSuffix(text, "(Check names them)\n"))
	}
}
