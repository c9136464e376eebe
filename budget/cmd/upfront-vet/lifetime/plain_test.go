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

// words are types, each as source text and as a type of this program.
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

// TestSameWords checks that the tool's error about a type equals that of package arena in a
// program.
func TestSameWords(t *testing.T) {
	const file = "scope/container/words_test.go"
	text := "package lifetime\n\nimport (\n"
	for path := range strings.FieldsSeq("bytes context math/big math/rand net net/netip os strings sync sync/atomic " +
		"time unsafe " + upfront + "arena " + upfront + "scope " + upfront + "scope/container") {
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
	byAnother := generic(g)
	list := g.vet()
	list = slices.DeleteFunc(list, func(f found) bool {
		says := byAnother[f.line]
		is := f.file == genericFile && says != "" && strings.HasPrefix(f.message, says)
		if is {
			delete(byAnother, f.line)
		}
		return is
	})
	if len(byAnother) != 0 {
		t.Errorf("not found: %v", byAnother)
	}
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

const genericFile = "scope/container/mk_test.go"

// generic adds generic functions that declare their type arguments to a garden, and uses of them. A
// use with a type that has Go pointers is reported at the use, wherever the function is.
func generic(g *garden) (want map[int]string) {
	g.edit(edit{"scope/container/mk.go", "", `package container

import "github.com/upfront-mem/upfront/scope"

func Mk[T any]() scope.Maker[T] { return scope.Plain[T]() }

type Kit[A, B any] struct{}

func (Kit[A, B]) Second() { scope.Plain[struct { N int; Of [2]B }]() }
`})
	text := `package container_test

import (
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/container"
)

func mk[T any]() scope.Maker[T] { return scope.Plain[T]() }

func through[A, B any](A) { mk[[3]B]() }

func beside[T any](T) { scope.Plain[uintptr](); _ = func(*T) {} }

//upfront:keeps the caller's word
func silent[T any]() { scope.Plain[T]() }

type point2[T any] struct{ X, Y T }

func use() {
`
	first := 1 + strings.Count(text, "\n")
	want = map[int]string{}
	for i, line := range []string{
		`mk[string]()`, `mk[int]()`,
		`container.Mk[*int]()`, `container.Mk[int]()`,
		`through[int, []int](1)`, `through[[]int, int](nil)`,
		`beside("")`, `silent[string]()`,
		`mk[point2[string]]()`, `mk[point2[int8]]()`,
		`container.Kit[int, string]{}.Second()`, `container.Kit[string, int]{}.Second()`,
	} {
		text += "\t" + line + "\n"
		if says := map[int]string{
			0:  "scope.Plain[string] by mk: string holds a Go pointer",
			2:  "scope.Plain[*int] by Mk: *int holds a Go pointer",
			4:  "scope.Plain[[]int] by through: []int holds a Go pointer",
			8:  "scope.Plain[point2[string]] by mk: point2[string].X (string) holds a Go pointer",
			10: "scope.Plain[string] by Second: string holds a Go pointer",
		}[i]; says != "" {
			want[first+i] = says
		}
	}
	g.edit(edit{genericFile, "", text + "}\n"})
	return want
}
