package scope

import (
	"cmp"
	"slices"

	"github.com/upfront-mem/upfront/arena_c"
)

// Usage is what scopes of one name, or an account, hold under that name.
type Usage struct {
	Name    string `json:"name"`
	Bytes   uint64 `json:"bytes"`   // held now
	Objects uint64 `json:"objects"` // allocations that are live
	Peak    uint64 `json:"peak"`    // the most Bytes that the name had at once since Open; 0 where it isn't counted

	PeakObjects uint64 `json:"peak_objects"` // likewise of Objects
}

// Account runs fn and books what s gains meanwhile under a name: a subsystem, as "sound". It returns fn's error. Errors
// of a full arena name the largest accounts, reports name all. Accounts nest, and each has what is its own: what an
// inner one gains isn't the outer one's. They are gone when their scope closes; temporaries are in none.
//
// s is the topmost scope. An arena has places for limits.accounts names (32 by default); one more is a full, which
// unwinds before fn runs. Cost: two differences, and a look through the names.
func Account(s Scope, name string, fn func() error) error {
	if !s.open() || s.isTemp() {
		panic(s.misuse("Account of"))
	}
	st := s.stack()
	st.inside++
	st.settle()
	outer := st.booking
	st.booking = booking{scope: s, account: st.accountOf(s, name), cursor: s.slot.Cursor, objects: s.slot.Objects()}
	defer st.book(outer)
	return fn()
}

// book ends the current account, and lets the outer one go on from here.
func (st *Stack) book(outer booking) {
	st.inside--
	st.settle()
	if outer.live() {
		outer.cursor, outer.objects = outer.scope.slot.Cursor, outer.scope.slot.Objects()
	}
	st.booking = outer
}

// account is a line of a stack's table. Lines stand in the order of their scopes.
type account struct {
	usage Usage
	scope int // index of its slot
	line  int // in the table of peaks
}

// booking is the account that gains now, and from where it counts.
type booking struct {
	scope   Scope // none: zero
	account int
	cursor  uint64
	objects uint64
}

func (b *booking) live() bool {
	return b.scope.slot != nil && b.scope.slot.Tag() == b.scope.generation()
}

// settle books what the current account gained.
func (st *Stack) settle() {
	b := &st.booking
	if !b.live() {
		return
	}
	slot, usage := b.scope.slot, &st.accounts[b.account].usage
	usage.Bytes += slot.Cursor - b.cursor
	usage.Objects += (slot.Objects() - b.objects) % arena_c.ObjectMax
	b.cursor, b.objects = slot.Cursor, slot.Objects()
}

// snapshot is the accounts before a constructor that may fail; nil when there are none.
func (st *Stack) snapshot() []account {
	st.settle()
	return slices.Clone(st.accounts)
}

// restore takes the accounts of s back to a snapshot.
func (st *Stack) restore(s Scope, snapshot []account) {
	st.accounts = append(st.accounts[:0], snapshot...)
	if st.booking.live() && st.booking.scope.slot == s.slot {
		st.booking.cursor, st.booking.objects = s.slot.Cursor, s.slot.Objects()
	}
}

// accountOf is the line of a name in a scope.
func (st *Stack) accountOf(s Scope, name string) int {
	index := int(s.slot.Index())
	for i := range st.accounts {
		if a := &st.accounts[i]; a.scope == index && a.usage.Name == name {
			return i
		}
	}
	if len(st.accounts) == cap(st.accounts) {
		panic(st.tableFull("accounts", uint64(cap(st.accounts)), st.scopeName(s.slot)))
	}
	if arena_c.Checked && arena_c.Refuse() {
		panic(st.refuseTable("accounts", uint64(cap(st.accounts)), st.scopeName(s.slot)))
	}
	st.event(&st.notes[index])
	line := 0
	if st.subsystems.lines != nil {
		line = st.lineOf(&st.subsystems, name)
	}
	st.accounts = append(st.accounts, account{Usage{Name: st.Keep(name)}, index, line})
	st.most.Accounts = max(st.most.Accounts, len(st.accounts))
	return len(st.accounts) - 1
}

// closeAccounts forgets those of the scope in slot index, which is closing.
func (st *Stack) closeAccounts(index int) {
	for n := len(st.accounts); n > 0 && st.accounts[n-1].scope >= index; n-- {
		st.accounts = st.accounts[:n-1]
	}
}

// holders are the three that hold most of the arena: accounts, what the open scopes hold beside them, and temporaries.
func (st *Stack) holders() (top []Usage) {
	row := st.row
	st.settle()
	for _, a := range st.accounts {
		top = append(top, a.usage)
	}
	for i := range row.Open {
		slot := row.Slot(i)
		u := Usage{Name: st.scopeName(slot), Bytes: slot.Cursor - slot.Start, Objects: slot.Objects()}
		for _, a := range st.accounts {
			if a.scope == int(i) {
				u.Bytes -= a.usage.Bytes
				u.Objects -= a.usage.Objects
			}
		}
		u.Objects %= arena_c.ObjectMax
		top = append(top, u)
	}
	temp := Usage{Name: "temp", Bytes: row.End - row.Edge}
	if row.FarOf != 0 {
		temp.Objects = row.Far().Objects()
	}
	top = slices.DeleteFunc(append(top, temp), func(u Usage) bool { return u.Bytes-1 >= arena_c.OffsetMax })
	slices.SortStableFunc(top, func(a, b Usage) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return top[:min(3, len(top))]
}
