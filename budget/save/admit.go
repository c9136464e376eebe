package save

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena/plain"
)

// ours lists packages of this module with the reason why their types can't be in a state, and the
// replacement.
var ours = map[string]string{
	"scope": "means nothing in another process; use arena.Ptr, or the arena.Handle of a HandlePool",
	"arena/blob": "is valid only in a verified blob; use an index, and check it in a function of " +
		"State.Verify",
	"scope/flow": "is valid only in a verified graph; use its value",
}

const ownedElsewhere = "means nothing in another process; use a number of your own, and keep the " +
	"Owned outside of the state"

const noAddress = "arena.Ptr for a value in the region, or uint64 for a number"

var arenaPath = reflect.TypeFor[arena.Base]().PkgPath()

// module is the path prefix of this module's packages.
var module = strings.TrimSuffix(arenaPath, "arena")

// admitted has the types that a state region can hold. So a server that loads its rooms again looks
// at each type once.
var admitted sync.Map // the keys are reflect.Types

// admits returns an error if a state region can't hold values of a type. The error has a line for
// each bad field at any depth, also through arena.Ptr and arena.Slice. Padding is refused because
// its bytes may differ where states are equal. A blank field `_ [3]byte` is fine: new memory is
// zeros, and no Go code writes the field. It is hashed like any other.
func (st *State) admits(t reflect.Type) error {
	if !st.saved.IsState {
		return nil
	}
	if _, known := admitted.Load(t); known {
		return nil
	}
	a := admission{seen: map[reflect.Type]bool{}}
	a.look(t)
	if a.faults == nil {
		admitted.Store(t, nil)
		return nil
	}
	return fmt.Errorf("save: BUG: the state of region %s can't have a %v:\n\t%w", st.saved.Name, t,
		errors.New(strings.Join(a.faults, "\n\t")))
}

// admission checks each type once.
type admission struct {
	seen   map[reflect.Type]bool
	faults []string
}

// look checks a type, and the types that its links lead to.
func (a *admission) look(t reflect.Type) {
	if a.seen[t] {
		return
	}
	a.seen[t] = true
	plain.Walk(plain.Go(t), func(p plain.Part) (into bool) {
		if p.Kind == reflect.Invalid {
			a.fault("%d bytes of padding after %s may have any value; write a field `_ [%[1]d]byte` there, "+
				"or put larger fields first", p.Size, p.Path)
			return false
		}
		why, to := oursOf(p.Go()), pointsTo(p.Go())
		switch {
		case why != "":
			a.fault("%s (%v) %s", p.Path, p.Type, why)
		case to != nil:
			a.look(to)
		case p.Kind == reflect.Uintptr:
			a.fault("%s (%v) is an address, or has another size on other machines; use %s", p.Path, p.Type, noAddress)
		case p.IsPointer(): // CheckPlain also refuses it
			a.fault("%s (%v) is an address; use %s", p.Path, p.Type, noAddress)
		default:
			return true
		}
		return false
	})
}

// oursOf returns the reason why a type of this module, or a type declared as such a type, isn't
// admitted, or "".
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

// pointsTo returns T for an arena.Ptr[T], an arena.Slice[T] or a type declared as either, else nil.
func pointsTo(t reflect.Type) reflect.Type {
	if t.Kind() != reflect.Struct || t.NumField() < 2 {
		return nil
	}
	if f := t.Field(1); f.Name != "stored" || f.PkgPath != arenaPath {
		return nil
	}
	return t.Field(0).Type.Elem().Elem()
}

// admitsAll checks the types of pools and containers, and in checked builds of all values that were
// made.
func (st *State) admitsAll() error {
	for i := range st.pools {
		p := &st.pools[i]
		if p.of == nil {
			return fmt.Errorf("save: BUG: region %s: C made a pool in the state, and its chunks have no type; make "+
				"it before Begin", st.saved.Name)
		}
		if err := st.admits(p.of); err != nil {
			return fmt.Errorf("%w\n\tin a pool of %d", err, p.header.Count)
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
			err = fmt.Errorf("save: BUG: the state of region %s has a %v with bools or links, and no link leads "+
				"to it: snapshots from outside can't be checked; add an arena.Slice, or call save.Values",
				st.saved.Name, m.Type)
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
