package save

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unsafe"

	"github.com/upfront-mem/upfront/arena"
)

// Version sets the version of the state's types, from 1 on, and allows conversions: [Ring.Read]
// then also reads files of other types. Without a Version, Read refuses them. Fields of the same
// name and type are copied wherever they moved. The changes list the rest. They apply to files of
// older versions; files from before the first Version have the version 0:
//
//	state, pond := save.Begin(region, s, ponds)
//	state.Version(1)                                      // Health is new: nothing to list
//	state.Version(2, save.Dropped("game.Frog.Mood"),      // gone
//		save.Renamed("game.Frog.Age", "Ticks"),           // Age is Ticks now
//		save.Converted(func(old frog1, now *Frog) { … })) // Speed was a uint8
//
// Call Version in the load, before NewRing, once for each version, in order. The last call has the
// version of the program. Read refuses files of a newer version. README.md has a table of changes.
//
// NewRing takes memory for one more image after a Version: the state as the load made it. A value
// that no file has, such as a new pool, is in a converted snapshot as the load made it. A new field
// of a chunk or of a container's value is zero.
//
// Version panics for a version that isn't higher than the last one, for a change of [Converted]
// whose old type holds a pointer, an arena.Ptr, Slice, String or Handle, and after NewRing.
func (st *State) Version(n uint32, changes ...Change) {
	if st.end != 0 || n <= st.version {
		panic(fmt.Sprintf("save: BUG: Version(%d) of region %s: call it before NewRing, in order; the last one is %d",
			n, st.saved.Name, st.version))
	}
	st.version = n
	for _, c := range changes {
		c.is.Version = n
		if err := c.check(); err != nil {
			panic(fmt.Sprintf("save: BUG: Version(%d) of region %s: %v", n, st.saved.Name, err))
		}
		st.changes = append(st.changes, c)
	}
}

// Change is a change of types between two versions of a program: see [State.Version].
type Change struct {
	is       changeLayout
	old, now reflect.Type // of Converted
	call     func(fill func(old []byte), now unsafe.Pointer)
}

// changeLayout is a change in a file's description.
type changeLayout struct {
	Version uint32 `json:"version"`
	Kind    string `json:"kind"`
	Name    string `json:"name"`         // for converted the type here
	To      string `json:"to,omitempty"` // for renamed
	Old     string `json:"old,omitempty"`
}

// These are the kinds of changes.
const (
	changeDropped, changeRenamed       = "dropped", "renamed"
	changeRenumbered, changeByFunction = "renumbered", "converted"
)

// Dropped lists something of older files that the program no longer has: a field "game.Frog.Mood",
// an enumerator "game.Mood.Calm", or a pool, container or [Values]. These have the name of
// [State.Name], or else of the type: "game.Frog" for a pool of frogs, "container.List[game.Fly]".
// The contents are lost. A handle into a dropped pool becomes zero.
func Dropped(name string) Change {
	return Change{is: changeLayout{Kind: changeDropped, Name: name}}
}

// Renamed lists a new name. A field's name in older files is "game.Frog.Age", and `to` is the
// field's name now: "Ticks". For an enumerator it is the same. A type has both names in full,
// "game.Frog" and "game.Toad". A pool, container or [Values] has the names of [State.Name].
func Renamed(name, to string) Change {
	return Change{is: changeLayout{Kind: changeRenamed, Name: name, To: to}}
}

// Renumbered lists a type, as "game.Mood", whose enumerators have other numbers in older files.
// Each number becomes that of the enumerator with the same name: see [Enum]. Read refuses a file
// with a number that has no name.
func Renumbered(name string) Change {
	return Change{is: changeLayout{Kind: changeRenumbered, Name: name}}
}

// Converted lists a function that converts each value of type New. It runs after the fields of
// the same name and type were copied to now. Old has the definition of the
// type in older files, or some of its fields, under any name:
//
//	type frog1 struct{ Speed uint8 } // until version 1
//
//	save.Converted(func(old frog1, now *Frog) { now.Speed = float32(old.Speed) / 16 })
//
// The fields of Old count as listed: they may be gone, or have another type in New. For a New that
// isn't a struct, Old is its type in older files. The function must neither keep now nor write
// its arena.Ptr, Slice, String or Handle. It may panic; then nothing has changed.
func Converted[Old, New any](fn func(old Old, now *New)) Change {
	return Change{changeLayout{Kind: changeByFunction}, reflect.TypeFor[Old](), reflect.TypeFor[New](),
		func(fill func([]byte), now unsafe.Pointer) {
			var old Old
			fill(unsafe.Slice((*byte)(unsafe.Pointer(&old)), unsafe.Sizeof(old)))
			fn(old, (*New)(now))
		}}
}

func (c *Change) check() error {
	switch {
	case c.is.Kind == "":
		return fmt.Errorf("a zero Change; make it with Dropped, Renamed, Renumbered or Converted")
	case c.old == nil:
		return c.is.check(nil)
	}
	for _, t := range []reflect.Type{c.old, c.now} {
		if err := arena.CheckPlain(t); err != nil {
			return fmt.Errorf("a Converted with %v: %w", t, err)
		}
	}
	if of := new(describer).of(c.old); of.has(isReference) {
		return fmt.Errorf("a Converted with %v, which has an arena.Ptr, Slice, String or Handle: only Read can move "+
			"them, by their names", c.old)
	}
	return nil
}

func (c *changeLayout) check(known map[string]*typeLayout) error {
	switch {
	case !isPrintable(c.Name) || !isPrintable(c.To) || c.Name == "":
		return fmt.Errorf("a change of %q to %q, which can't be printed", c.Name, c.To)
	case (c.Kind == changeRenamed) != (c.To != ""):
		return fmt.Errorf("a change %q of %q to %q", c.Kind, c.Name, c.To)
	case c.Kind == changeByFunction && known[c.Old] == nil:
		return fmt.Errorf("a change of %q from %q, which is missing", c.Name, c.Old)
	case c.Kind != changeDropped && c.Kind != changeRenamed && c.Kind != changeRenumbered && c.Kind != changeByFunction:
		return fmt.Errorf("a change of the kind %q", c.Kind)
	}
	return nil
}

func isReference(t *typeLayout) bool { return t.isLink || t.Kind == kindHandle }

// has reports whether a type or a part of it satisfies is.
func (t *typeLayout) has(is func(*typeLayout) bool) bool {
	return is(t) || t.Kind == "array" && t.of.has(is) ||
		slices.ContainsFunc(t.Fields, func(f fieldLayout) bool { return f.of.has(is) })
}

// Name names the next pool or container that the load makes, or else the next call of [Values]. A
// file has the names. Two pools of one type need names if a later version of the program has other
// pools of this type, or makes them in another order; so do containers and Values. A name has no
// dot. Call Name in the load:
//
//	state.Name("reds")
//	reds := frogs.HandlePool(s, 64)
//	state.Name("blues")
//	blues := frogs.HandlePool(s, 64)
//
// Files of a program without the names are of other types: see [State.Version]. Name panics after
// NewRing. NewRing panics if no pool, container or Values follows a name.
func (st *State) Name(name string) {
	if st.end != 0 || name == "" || strings.Contains(name, ".") || !isPrintable(name) ||
		slices.ContainsFunc(st.names, func(n named) bool { return n.name == name }) {
		panic(fmt.Sprintf("save: BUG: Name(%q) in region %s: a name has no dot and no control character, is new, and "+
			"comes before NewRing", name, st.saved.Name))
	}
	st.names = append(st.names, named{name, st.header().Cursor, len(st.values)})
}

// named is a call of State.Name.
type named struct {
	name   string
	cursor uint64
	values int // calls of Values before it
}

// nameAll gives the names to pools, containers and values.
func (st *State) nameAll() error {
	for i, n := range st.names {
		end, values := st.end, len(st.values)
		if i+1 < len(st.names) {
			end, values = st.names[i+1].cursor, st.names[i+1].values
		}
		first, of := end, (*string)(nil)
		for k := range st.pools {
			if p := &st.pools[k]; st.mark+p.first >= n.cursor && st.mark+p.first < first {
				first, of = st.mark+p.first, &p.name
			}
		}
		for k := range st.tenants {
			if t := &st.tenants[k]; t.kept && st.mark+t.at >= n.cursor && st.mark+t.at < first {
				first, of = st.mark+t.at, &t.called
			}
		}
		if of == nil && n.values < values {
			of = &st.values[n.values].what
		}
		if of == nil {
			return fmt.Errorf("save: BUG: Name(%q) in region %s: no pool, container or Values follows it", n.name,
				st.saved.Name)
		}
		*of = n.name
	}
	return nil
}

// Enum declares the enumerators of an integer type, with their names. Package reflect doesn't know
// constants, so the program lists them:
//
//	save.Enum(state, map[string]Mood{"Calm": Calm, "Hungry": Hungry, "Angry": Angry})
//
// A file has names and numbers. [Ring.Read] refuses a file in which a name has another number, or
// which has a name that is missing here, unless the program lists the change: see [Renumbered],
// [Renamed] and [Dropped]. New names are fine. A file of a program that didn't declare the type's
// enumerators is read as if it had the same, so declare them before the first change. Files of a
// program with other enumerators are of other types: see [State.Version].
//
// Enum panics for a T without a name of its own, for a name that can't be printed, and after
// NewRing. It makes Go allocations.
func Enum[T ~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64](st *State,
	enumerators map[string]T) {
	t := reflect.TypeFor[T]()
	st.declares("Enum", t)
	if t.PkgPath() == "" || len(enumerators) == 0 {
		panic(fmt.Sprintf("save: BUG: Enum of region %s: %d enumerators of %v, which isn't a type of the program",
			st.saved.Name, len(enumerators), t))
	}
	var list []enumerator
	for name, value := range enumerators {
		list = append(list, enumerator{name, int64(value)})
		if !isPrintable(name) || name == "" {
			panic(fmt.Sprintf("save: BUG: Enum of region %s: %v %q, which can't be printed", st.saved.Name, t, name))
		}
	}
	slices.SortFunc(list, func(a, b enumerator) int {
		return cmp.Or(cmp.Compare(a.Value, b.Value), strings.Compare(a.Name, b.Name))
	})
	if st.enums == nil {
		st.enums = map[reflect.Type][]enumerator{}
	}
	st.enums[t] = list
}

// enumerator is a named number of a type.
type enumerator struct {
	Name  string `json:"name"`
	Value int64  `json:"value"`
}

func (t *typeLayout) checkEnum() error {
	seen := map[string]bool{}
	for _, e := range t.Enum {
		if !isPrintable(e.Name) || seen[e.Name] || !isInteger(t.Kind) {
			return fmt.Errorf("an enumerator %q of a %s", e.Name, t.Kind)
		}
		seen[e.Name] = true
	}
	return nil
}

func isInteger(kind string) bool {
	return numbers[kind] != nil && (strings.HasPrefix(kind, "int") || strings.HasPrefix(kind, "uint"))
}

// integer returns the number of an integer type; a uint64 has the bits of the result.
func (t *typeLayout) integer(b []byte) int64 {
	var first [8]byte
	copy(first[:], b[:t.Size])
	word := binary.LittleEndian.Uint64(first[:])
	if unused := 64 - 8*t.Size; strings.HasPrefix(t.Kind, "int") {
		return int64(word<<unused) >> unused
	}
	return int64(word)
}
