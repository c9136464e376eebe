//go:build linux && cgo

package group

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/mattn/go-sqlite3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"

	_ "github.com/upfront-mem/upfront/arena/with/malloc"
	withsqlite "github.com/upfront-mem/upfront/arena/with/sqlite"
	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/platform"
	"github.com/upfront-mem/upfront/scope"
	withwazero "github.com/upfront-mem/upfront/scope/with/wazero"
	"github.com/upfront-mem/upfront/tests/step"
)

// beyondPlan is the constant: the bytes of a group that no share has. They are the program's code
// and data, the kernel's own tables, and the runtime's excess over its soft limit.
const beyondPlan = 32 * budget.MiB

// planVariable has the plan of a child, overVariable the bytes that a child takes outside of it.
const planVariable, overVariable = "UPFRONT_TEST_GROUP_PLAN", "UPFRONT_TEST_GROUP_OVER"

// TestProcessInAGroup runs a child for each of many plans. With "rest" the child works out the Go
// share itself, from the same limit.
func TestProcessInAGroup(t *testing.T) {
	if text := os.Getenv(planVariable); text != "" {
		child(t, text)
		return
	}
	step.Needs(t, step.Gate)
	if platform.GoBacked || arena_c.Asan || arena_c.Checked {
		t.Skip("instrumented builds need more than the plan's bytes: UPFRONT_STEP=gate go test . runs it")
	}
	random := rand.New(rand.NewPCG(44, 1))
	mib := func(from, to int) uint64 {
		return uint64(from)*budget.MiB + random.Uint64N(uint64(to-from)*budget.MiB)
	}
	most := uint64(0)
	for i := range step.Pick(20, 20, 1000) {
		plan := budget.Plan{Name: "group", Regions: []budget.RegionPlan{{Name: "level", Size: mib(2, 24)}},
			Scratch: budget.ScratchPlan{Workers: 1, Each: 1, Size: mib(2, 24)}, GoHeap: mib(24, 96),
			CHeap: budget.CHeapPlan{Size: mib(2, 24)}}
		if i%4 == 3 {
			plan.Pages.Prefault = budget.Off
		}
		cost, err := plan.Cost()
		require.NoError(t, err)
		limit := cost.Resident4K + cost.GoHeap + cost.CHeap + beyondPlan
		if i%2 == 1 {
			plan.GoHeap = budget.Rest
		}
		out, err := inGroup(t, limit, plan, 0)
		if !assert.NoError(t, err, "killed? %v in %d bytes:\n%s", plan, limit, out) {
			return
		}
		for _, words := range []string{"SQLite: out of memory", "wasm: memory.grow returned -1",
			"C: malloc returned NULL", "Go: collected its garbage"} {
			assert.Contains(t, out, words)
		}
		peak, text := uint64(0), out[strings.LastIndex(out, "peak ")+len("peak "):]
		_, err = fmt.Sscan(text, &peak)
		require.NoError(t, err, out)
		most = max(most, peak-min(peak, limit-beyondPlan))
	}
	t.Logf("present beyond the plan, at most: %d bytes; the constant is %d", most, beyondPlan)

	// The control: the group kills a process that takes the constant again.
	plan := budget.Plan{Name: "group", Regions: []budget.RegionPlan{{Name: "level", Size: 4 * budget.MiB}},
		Scratch: budget.ScratchPlan{Workers: 1, Each: 1, Size: 4 * budget.MiB}, GoHeap: 24 * budget.MiB,
		CHeap: budget.CHeapPlan{Size: 4 * budget.MiB}}
	cost, err := plan.Cost()
	require.NoError(t, err)
	limit := cost.Resident4K + cost.GoHeap + cost.CHeap + beyondPlan
	out, err := inGroup(t, limit, plan, limit)
	assert.ErrorContains(t, err, "signal: killed", out)
}

// inGroup runs a child with a plan in a group of its own. The child takes over bytes more.
func inGroup(t *testing.T, limit uint64, plan budget.Plan, over uint64) (out string, err error) {
	t.Helper()
	group, why := step.MemoryGroup(limit)
	if why != "" {
		t.Skip(step.Unproven + why)
	}
	defer func() { assert.NoError(t, os.Remove(group)) }()
	text, err := json.Marshal(plan)
	require.NoError(t, err)
	cmd := exec.Command("sh", "-c", `echo $$ >"$0/cgroup.procs" && exec "$@"`, group, os.Args[0],
		"-test.run=^TestProcessInAGroup$", "-test.v")
	cmd.Env = append(os.Environ(), planVariable+"="+string(text), fmt.Sprint(overVariable, "=", over))
	all, err := cmd.CombinedOutput()
	return string(all), err
}

// child opens the plan, and fills each share.
func child(t *testing.T, text string) {
	plan, err := budget.ParsePlan([]byte(text))
	require.NoError(t, err)
	b, err := budget.Open(plan)
	require.NoError(t, err)
	over := uint64(0)
	if _, err := fmt.Sscan(os.Getenv(overVariable), &over); over != 0 {
		require.NoError(t, err)
		t.Log(exceed(over))
	}
	level, err := budget.Load(t.Context(), b.Region("level"), func(s scope.Scope) (*sql.DB, error) {
		_, err := withsqlite.Use(s, plan.Regions[0].Size-budget.MiB/2+64*budget.KiB, 64*budget.KiB)
		if err != nil {
			return nil, err
		}
		db, err := sql.Open("sqlite3", ":memory:")
		if err == nil {
			db.SetMaxOpenConns(1)
			s.Own(db)
			_, err = db.Exec("CREATE TABLE frogs(name)")
		}
		return db, err
	})
	require.NoError(t, err)
	for err == nil {
		_, err = level.Get().Exec("INSERT INTO frogs VALUES (zeroblob(60000))")
	}
	full, ok := errors.AsType[sqlite3.Error](err)
	require.True(t, ok && full.Code == sqlite3.ErrNomem, "%v", err)
	fmt.Println("SQLite:", err)

	ctx := context.Background()
	grow, err := os.ReadFile("../../scope/with/wazero/testdata/grow.wasm")
	require.NoError(t, err)
	r := wazero.NewRuntime(ctx)
	compiled, err := r.CompileModule(ctx, grow)
	require.NoError(t, err)
	require.NoError(t, b.Scratch(0, 0).Do("guest", func(s scope.Scope) error {
		guest, err := withwazero.NewGuests(s, r, withwazero.Memory{Most: plan.Scratch.Size - plan.Scratch.Size/16}).
			Instantiate(ctx, compiled, wazero.NewModuleConfig())
		if err != nil {
			return err
		}
		for {
			pages, err := guest.ExportedFunction("grow").Call(ctx, 1)
			if err != nil {
				return err
			}
			if int32(pages[0]) == -1 {
				break
			}
		}
		memory, ok := guest.Memory().Read(0, guest.Memory().Size())
		for i := range memory {
			memory[i] = 1
		}
		fmt.Println("wasm: memory.grow returned -1 at", len(memory), "bytes", ok)
		return nil
	}))
	require.NoError(t, r.Close(ctx))

	bytes := fillC(60_000)
	assert.Greater(t, bytes, plan.CHeap.Size/2)
	assert.Less(t, bytes, plan.CHeap.Size)
	fmt.Println("C: malloc returned NULL after", bytes, "bytes")

	share := b.Report().GoHeap
	before := share.Collections
	kept := make([][]byte, (share.Limit-12*budget.MiB)/2/(64*budget.KiB))
	for i := range int(4 * share.Limit / (64 * budget.KiB)) {
		block := make([]byte, 64*budget.KiB)
		block[0] = byte(i)
		kept[i%len(kept)] = block
	}
	after := b.Report().GoHeap
	assert.Greater(t, after.Collections, before)
	fmt.Println("Go: collected its garbage within", after.Limit, "bytes:", after.Used)
	runtime.KeepAlive(kept)
	require.NoError(t, b.Close())
	peak, _ := platform.ResidentPeak()
	fmt.Println("peak", peak)
}
