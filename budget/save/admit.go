package save

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena/plain"
)

// ours is what types of a package mean that nobody else can check, and what to write instead: of this
// module's packages by their paths in it.
var ours = map[string]string{
	"scope": "means nothing in another process; use arena.Ptr, or the arena.Handle of a HandlePool",
	"arena/blob": "is good in a blob that was verified, and nowhere else; use an index, and check it in " +
		"a function of State.Verify",
	"scope/flow": "is good in a graph that was verified, and nowhere else; use its value",
}

const ownedElsewhere = "means nothing in another process; use a number of yours, and keep the Owned " +
	"beside the state"

const noAddress = "arena.Ptr for what lies in the region, or uint64 for a number"

var arenaPath = reflect.TypeFor[arena.Base]().PkgPath()

// module is where this one's packages lie.
var module = strings.TrimSuffix(arenaPath, "arena")

// admits says why a state region can't have values of a type, with a line for each field at any
// depth that is at fault, and through arena.Ptr and arena.Slice; nil when it can. Bytes that nobody
// writes, padding, may differ where states are equal. A blank field `_ [3]byte` is no padding: it
// is zeros, since memory is when it is given, and Go code has no way to write it; it is hashed as
// any other.
func (st *State) admits(t reflect.Type) error {
	if !st.saved.IsState() {
		return nil
	}
	a := admission{seen: map[reflect.Type]bool{}}
	a.look(t)
	if a.faults == nil {
		return nil
	}
	return fmt.Errorf("save: BUG: the state of region %s can't have a %v:\n\t%w", st.saved.Name(), t,
		errors.New(strings.Join(a.faults, "\n\t")))
}

// admission looks at each type once.
type admission struct {
	seen   map[reflect.Type]bool
	faults []string
}

// look looks at a type, and at those that its links lead to.
func (a *admission) look(t reflect.Type) {
	if a.seen[t] {
		return
	}
	a.seen[t] = true
	plain.Walk(plain.Go(t), func(p plain.Part) (into bool) {
		if p.Kind == reflect.Invalid {
			a.fault("%d bytes of padding behind %s may hold anything; write a field `_ [%[1]d]byte` there, "+
				"or have larger fields first", p.Size, p.Path)
			return false
		}
		why, to := oursOf(p.Go()), pointsTo(p.Go())
		switch {
		case why != "":
			a.fault("%s (%v) %s", p.Path, p.Type, why)
		case to != nil:
			a.look(to)
		case p.Kind == reflect.Uintptr:
			a.fault("%s (%v) is an address, or has another size elsewhere; use %s", p.Path, p.Type, noAddress)
		case p.IsPointer(): // CheckPlain refuses it
			a.fault("%s (%v) is an address; use %s", p.Path, p.Type, noAddress)
		default:
			return true
		}
		return false
	})
}

// oursOf is what is wrong with a type of this module's, also with one that is declared as such.
func oursOf(t reflect.Type) string {
	if t.Name() == "Owned" && t.PkgPath() == module+"scope" {
		return ownedElsewhere
	}
	for i := 0; t.Kind() == reflect.Struct && i < t.NumField(); i++ {
		if path, in := strings.CutPrefix(t.Field(i).PkgPath, module); in && ours[path] != "" {
			return ours[path]
		}
	}
	return ""
}

func (a *admission) fault(format string, args ...any) {
	a.faults = append(a.faults, fmt.Sprintf(format, args...))
}

// pointsTo is T of an arena.Ptr[T] or an arena.Slice[T], also of a type that is declared as one;
// nil of anything else.
func pointsTo(t reflect.Type) reflect.Type {
	if t.Kind() != reflect.Struct || t.NumField() < 2 {
		return nil
	}
	if f := t.Field(1); f.Name != "stored" || f.PkgPath != arenaPath {
		return nil
	}
	return t.Field(0).Type.Elem().Elem()
}

// admitsAll looks at pools' types, and in checked builds at those of all that was made.
func (st *State) admitsAll() error {
	for i := range st.pools {
		p := &st.pools[i]
		if p.of == nil {
			return fmt.Errorf("save: BUG: a pool of C in the state of region %s: its chunks have no type",
				st.saved.Name())
		}
		if err := st.admits(p.of); err != nil {
			return fmt.Errorf("%w\n\tas a pool of %d has it", err, p.header.Count)
		}
	}
	if err := st.admitsKept(); err != nil {
		return err
	}
	if len(st.made) == 0 { // in release builds
		return nil
	}
	seen := newLinks(st)
	for i := range st.made {
		m := &st.made[i]
		err := st.admits(m.Type)
		if err == nil && seen.misses(m.Type, m.Offset) {
			err = fmt.Errorf("save: BUG: the state of region %s has a %v with bools or links that what comes "+
				"from outside isn't checked for: lead to it by an arena.Slice, or name it by save.Values",
				st.saved.Name(), m.Type)
		}
		if err != nil {
			where := fmt.Sprintf("in scope %q", m.Scope)
			if m.Label != "" {
				where += fmt.Sprintf(", label %q", m.Label)
			}
			return fmt.Errorf("%w\n\t%s%s", err, where, m.Site.Tell("made"))
		}
	}
	return nil
}
