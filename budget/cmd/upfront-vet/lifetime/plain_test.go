package lifetime

import (
	"bytes"
	"context"
	"fmt"
	"math/big"
	"math/rand"
	"net"
	"net/netip"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/container"
)

type (
	clock struct{ Day struct{ Dawn [2]time.Time } }
	pond  struct {
		sync.Mutex
		Frogs map[int]string
		Hop   func(int) error
	}
	stamp time.Time
)

// words are types as they are written, and as a program has them.
var words = []struct {
	text string
	t    reflect.Type
}{
	{"string", reflect.TypeFor[string]()},
	{"*int", reflect.TypeFor[*int]()},
	{"unsafe.Pointer", reflect.TypeFor[unsafe.Pointer]()},
	{"[]string", reflect.TypeFor[[]string]()},
	{"[3][]*int", reflect.TypeFor[[3][]*int]()},
	{"map[int]bool", reflect.TypeFor[map[int]bool]()},
	{"func(int) error", reflect.TypeFor[func(int) error]()},
	{"chan int", reflect.TypeFor[chan int]()},
	{"error", reflect.TypeFor[error]()},
	{"any", reflect.TypeFor[any]()},
	{"clock", reflect.TypeFor[clock]()},
	{"pond", reflect.TypeFor[pond]()},
	{"stamp", reflect.TypeFor[stamp]()},
	{"sync.Pool", reflect.TypeFor[sync.Pool]()},
	{"sync.Map", reflect.TypeFor[sync.Map]()},
	{"atomic.Pointer[int]", reflect.TypeFor[atomic.Pointer[int]]()},
	{"netip.AddrPort", reflect.TypeFor[netip.AddrPort]()},
	{"net.IP", reflect.TypeFor[net.IP]()},
	{"*net.UDPAddr", reflect.TypeFor[*net.UDPAddr]()},
	{"rand.Rand", reflect.TypeFor[rand.Rand]()},
	{"strings.Builder", reflect.TypeFor[strings.Builder]()},
	{"bytes.Buffer", reflect.TypeFor[bytes.Buffer]()},
	{"big.Int", reflect.TypeFor[big.Int]()},
	{"context.Context", reflect.TypeFor[context.Context]()},
	{"*os.File", reflect.TypeFor[*os.File]()},
	{"container.List[int]", reflect.TypeFor[container.List[int]]()},
	{"scope.Text", reflect.TypeFor[scope.Text]()},
	{"arena.Base", reflect.TypeFor[arena.Base]()},

	{"sync.Mutex", reflect.TypeFor[sync.Mutex]()},
	{"[0]sync.Pool", reflect.TypeFor[[0]sync.Pool]()},
	{"arena.Handle[string]", reflect.TypeFor[arena.Handle[string]]()},
	{"arena.Slice[arena.String]", reflect.TypeFor[arena.Slice[arena.String]]()},
	{"[4]complex128", reflect.TypeFor[[4]complex128]()},
}

// TestSameWords: of a type that it reads the tool says what package arena says of it in a program.
func TestSameWords(t *testing.T) {
	const file = "scope/container/words_test.go"
	text := "package lifetime\n\nimport (\n"
	for _, path := range []string{"bytes", "context", "math/big", "math/rand", "net", "net/netip", "os", "strings", "sync", "sync/atomic", "time",
		"unsafe", "github.com/upfront-mem/upfront/arena", "github.com/upfront-mem/upfront/scope", "github.com/upfront-mem/upfront/scope/container"} {
		text += fmt.Sprintf("\t%q\n", path)
	}
	text += `)

type (
	clock struct{ Day struct{ Dawn [2]time.Time } }
	pond  struct {
		sync.Mutex
		Frogs map[int]string
		Hop   func(int) error
	}
	stamp time.Time
)

func all[T any]() { scope.Plain[T]() } // whoever says what T is is asked

`
	text = strings.Replace(text, "package lifetime", "package container_test", 1)
	first := 1 + strings.Count(text, "\n")
	for _, w := range words {
		text += "var _ = scope.Plain[" + w.text + "]()\n"
	}
	g := newGarden(t, root)
	g.edit(edit{file, "", text})
	list := g.vet()
	for i, w := range words {
		var want, got string
		if err := arena.CheckPlain(w.t); err != nil {
			want = strings.ReplaceAll(strings.ReplaceAll(err.Error(), "lifetime.", "container_test."), "\n", "\n\t")
		}
		if k := slices.IndexFunc(list, func(f found) bool { return f.line == first+i }); k >= 0 {
			_, got, _ = strings.Cut(list[k].message, w.text+"]: ")
			list = slices.Delete(list, k, k+1)
		}
		if got != want {
			t.Errorf("%s:\nin a program %q\nread         %q", w.text, want, got)
		}
	}
	if len(list) > 0 {
		t.Error(list)
	}
}
