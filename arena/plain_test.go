package arena_test

import (
	"bytes"
	"container/list"
	"context"
	"math/big"
	"math/rand"
	randv2 "math/rand/v2"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/scope/container"
	"github.com/upfront-mem/upfront/tests/step"
)

type (
	clock struct{ Day struct{ Dawn [2]time.Time } }
	deep  struct {
		B struct{ P atomic.Pointer[int] }
	}
	hopping struct {
		Before int
		Hop    func(int) error
	}
	pond struct {
		sync.Mutex
		Frogs map[int]node
	}
	recursive []recursive
	stamp     time.Time // a type of the caller's own, so its fields are named
)

const (
	held     = "; use scope.Owned, which Scope.Keep gives"
	pointers = "arena.Ptr, scope.Ref, or scope.Addr if it points to memory that lives longer"
)

var plainTypes = []struct {
	t    reflect.Type
	want string // the message's begin and end, around "holds a Go pointer"; empty: t is plain
	use  string
}{
	{reflect.TypeFor[string](), "string", "; use arena.String, or arena.Inline for a short text"},
	{reflect.TypeFor[*int](), "*int", "; use " + pointers},
	{reflect.TypeFor[unsafe.Pointer](), "Pointer (unsafe.Pointer)",
		"; use arena.Ptr, or uintptr for an address that only C uses"},
	{reflect.TypeFor[[]*node](), "[]*arena_test.node", "; use arena.Slice of " + pointers},
	{reflect.TypeFor[[]string](), "[]string", "; use arena.Slice of arena.String, or arena.Inline for a short text"},
	{reflect.TypeFor[recursive](), "recursive (arena_test.recursive)", "; use arena.Slice"},
	{reflect.TypeFor[[3][]int](), "[3][]int[0] ([]int)", "; use arena.Slice"},
	{reflect.TypeFor[map[int]bool](), "map[int]bool",
		"; use arena.Slice here, or a container.Map outside of the block"},
	{reflect.TypeFor[pond](), "pond.Frogs (map[int]arena_test.node)",
		"; use arena.Slice here, or a container.Map outside of the block"},
	{reflect.TypeFor[hopping](), "hopping.Hop (func(int) error)", held},
	{reflect.TypeFor[chan int](), "chan int", held},
	{reflect.TypeFor[error](), "error", held},
	{reflect.TypeFor[any](), "interface {}", held},

	{reflect.TypeFor[struct{ Pool sync.Pool }](), "struct { Pool sync.Pool }.Pool (sync.Pool)", "; use scope.Pool"},
	{reflect.TypeFor[sync.Pool](), "Pool (sync.Pool)", "; use scope.Pool"},
	{reflect.TypeFor[sync.Cond](), "Cond (sync.Cond)", held},
	{reflect.TypeFor[sync.Map](), "Map (sync.Map)", "; use a container.Map and a sync.Mutex outside of the block"},
	{reflect.TypeFor[deep](), "deep.B.P (atomic.Pointer[int])", "; use atomic.Uint64 of an arena.Handle"},
	{reflect.TypeFor[atomic.Value](), "Value (atomic.Value)", held},
	{reflect.TypeFor[clock](), "clock.Day.Dawn[0] (time.Time)", "; use int64 of UnixNano"},
	{reflect.TypeFor[time.Timer](), "Timer (time.Timer)", held},
	{reflect.TypeFor[netip.Addr](), "Addr (netip.Addr)", "; use [16]byte of As16"},
	{reflect.TypeFor[netip.AddrPort](), "AddrPort (netip.AddrPort)",
		"; use [16]byte of Addr().As16() and uint16 of Port()"},
	{reflect.TypeFor[netip.Prefix](), "Prefix (netip.Prefix)", "; use [16]byte of Addr().As16() and int8 of Bits()"},
	{reflect.TypeFor[net.IP](), "IP (net.IP)", "; use [16]byte of To16"},
	{reflect.TypeFor[*net.UDPAddr](), "*net.UDPAddr", held},
	{reflect.TypeFor[net.UDPAddr](), "UDPAddr (net.UDPAddr)",
		"; use [16]byte of AddrPort().Addr().As16() and uint16 of Port"},
	{reflect.TypeFor[rand.Rand](), "Rand (rand.Rand)", "; use rand.PCG of math/rand/v2"},
	{reflect.TypeFor[randv2.Rand](), "Rand (rand.Rand)", "; use rand.PCG"},
	{reflect.TypeFor[strings.Builder](), "Builder (strings.Builder)", "; use scope.Text, and arena.String here"},
	{reflect.TypeFor[bytes.Buffer](), "Buffer (bytes.Buffer)", "; use scope.Text, and arena.Slice here"},
	{reflect.TypeFor[big.Int](), "Int (big.Int)", held},
	{reflect.TypeFor[list.List](), "List (list.List)", held},
	{reflect.TypeFor[context.Context](), "Context (context.Context)", held},
	{reflect.TypeFor[*os.File](), "*os.File", held},
	{reflect.TypeFor[struct{ Near container.List[int] }](),
		"struct { Near container.List[int] }.Near (container.List[int])", held},
	{reflect.TypeFor[*node](), "*arena_test.node", "; use " + pointers},
	{reflect.TypeFor[stamp](), "stamp.loc (*time.Location)", held},
	{reflect.TypeFor[arena.Base](), "Base (arena.Base)", held},
	{reflect.TypeFor[arena.BlockPool[int]](), "BlockPool[int] (arena.BlockPool[int])", held},

	{reflect.TypeFor[node](), "", ""},
	{reflect.TypeFor[sync.Mutex](), "", ""},
	{reflect.TypeFor[sync.RWMutex](), "", ""},
	{reflect.TypeFor[sync.Once](), "", ""},
	{reflect.TypeFor[sync.WaitGroup](), "", ""},
	{reflect.TypeFor[atomic.Int64](), "", ""},
	{reflect.TypeFor[time.Duration](), "", ""},
	{reflect.TypeFor[randv2.PCG](), "", ""},
	{reflect.TypeFor[[4]complex128](), "", ""},
	{reflect.TypeFor[uintptr](), "", ""},
	{reflect.TypeFor[[0]sync.Pool](), "", ""},
	{reflect.TypeFor[arena.Handle[string]](), "", ""},
	{reflect.TypeFor[[2]struct{ M sync.Mutex }](), "", ""},
}

func TestCheckPlain(t *testing.T) {
	for _, c := range plainTypes {
		err := arena.CheckPlain(c.t)
		if c.want == "" {
			assert.NoError(t, err)
		} else {
			assert.EqualError(t, err, c.want+" holds a Go pointer"+c.use)
		}
	}
}

func TestCheckPlainNamesAll(t *testing.T) {
	type player struct {
		Name  string
		Age   int32
		From  netip.AddrPort
		Seen  [2]struct{ First, Last time.Time }
		Hooks []func()
		Near  []*node
		Each  map[string]int
		Done  chan bool
	}
	lines := []string{
		"player.Name (string) holds a Go pointer; use arena.String, or arena.Inline for a short text",
		"player.From (netip.AddrPort) holds a Go pointer; use [16]byte of Addr().As16() and uint16 of Port()",
		"player.Seen[0].First (time.Time) holds a Go pointer; use int64 of UnixNano",
		"player.Seen[0].Last (time.Time) holds a Go pointer; use int64 of UnixNano",
		"player.Hooks ([]func()) holds a Go pointer; use arena.Slice",
		"player.Near ([]*arena_test.node) holds a Go pointer; use arena.Slice of " + pointers,
		"player.Each (map[string]int) holds a Go pointer; use arena.Slice here, " +
			"or a container.Map outside of the block",
		"player.Done (chan bool) holds a Go pointer" + held,
	}
	assert.EqualError(t, arena.CheckPlain(reflect.TypeFor[player]()), strings.Join(lines, "\n"))
}

// TestIsStandard: a user's package may have a path without a dot.
func TestIsStandard(t *testing.T) {
	for _, path := range []string{"main", "frogpond", "frogpond/time", "frogs_test", "command-line-arguments", "timer",
		"github.com/time/sync"} {
		assert.False(t, arena.IsStandard(path), path)
	}
}

func TestAllOfGoIsStandard(t *testing.T) {
	step.Needs(t, step.Check)
	out, err := exec.Command("go", "list", "std").Output()
	require.NoError(t, err)
	packages := strings.Fields(string(out))
	assert.Greater(t, len(packages), 100)
	for _, path := range packages {
		assert.True(t, arena.IsStandard(path), path)
	}
}
