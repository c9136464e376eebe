package scope_test

import (
	"errors"
	"fmt"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// A bar has eight seats in a row. Eight guests came one by one, and every other one has left: four seats are free, but
// no two of them side by side. A party of four can't sit. No heap that frees in any order is safe from that. The bar is that of
// "Alternatives to malloc and new" (#AltDevBlogADay).
func Example_sushiBarOnHeap() {
	b, _ := openExample()
	defer b.Close()
	err := b.Scratch(0, 0).Do("sushi bar", func(s scope.Scope) error {
		bar, err := arena.NewHeap(s.BytesUnzeroed(16*budget.KiB, 64))
		if err != nil {
			return err
		}
		const seat, header = 1024, 16 // bytes; the header is the heap's own, in front of each block
		sit := func(party uint64) unsafe.Pointer { return bar.Alloc(party*seat-header, 16) }

		bar.Alloc(bar.Stats().Free-8*seat-header, 16) // the kitchen takes all but eight seats
		var guests [8]unsafe.Pointer
		for i := range guests {
			guests[i] = sit(1)
		}
		for i := 0; i < 8; i += 2 {
			err = errors.Join(err, bar.Free(guests[i]))
		}
		fmt.Println(bar.Stats().Free, "bytes are free,", bar.LargestFree(), "side by side")
		fmt.Println("a party of four:", sit(4) != nil)
		return err
	})
	fmt.Println(err)
	// Output:
	// 4096 bytes are free, 1008 side by side
	// a party of four: false
	// <nil>
}

// Seat is an eighth of the bar.
type Seat [8 * budget.KiB]byte

var seats = scope.Plain[Seat]()

// sit seats a party behind another, in a scope of its own.
func sit(behind scope.Scope, party string, guests int) scope.Scope {
	s := behind.Open(party)
	seats.Slice(s, guests)
	return s
}

// In scopes a party sits behind those who came before it, and leaves before them. So free seats are always side by
// side: as many friends as there are free seats sit down together. The price is that who sits further in can't leave
// first; guests who come and go one by one have a Pool, whose seats are all of one size.
func Example_sushiBarInScopes() {
	b, _ := openExample()
	defer b.Close()

	bar := b.Scratch(0, 0).Open("bar")
	couple := sit(bar, "couple", 2)
	family := sit(couple, "family", 5)
	regular := sit(family, "regular", 1)
	fmt.Println("free seats:", freeSeats(regular))

	fmt.Println(family.Close())
	fmt.Println(regular.Close(), family.Close()) // in order
	fmt.Println("free seats:", freeSeats(couple))
	friends := sit(couple, "friends", freeSeats(couple)) // all of them, together
	fmt.Println("free seats:", freeSeats(friends))
	fmt.Println(friends.Close(), couple.Close(), bar.Close())
	// Output:
	// free seats: 0
	// scope: BUG: Close of scope "family" of scratch 0.0 while scope "regular", opened in it, is open
	// <nil> <nil>
	// free seats: 6
	// free seats: 0
	// <nil> <nil> <nil>
}

func freeSeats(s scope.Scope) int { return int(s.Free() / uint64(unsafe.Sizeof(Seat{}))) }

// TestFreeSeatsAreSideBySide seats parties in every way there is, and whenever one has left, all free seats are asked
// for at once.
func TestFreeSeatsAreSideBySide(t *testing.T) {
	b, _ := openExample()
	defer b.Close()
	parties := 0
	var fill func(behind scope.Scope)
	fill = func(behind scope.Scope) {
		free := freeSeats(behind)
		for guests := 1; guests <= free; guests++ {
			parties++
			party := sit(behind, "party", guests)
			fill(party)
			require.NoError(t, party.Close())
			friends := behind.Open("friends")
			require.Len(t, seats.TrySlice(friends, free), free)
			require.NoError(t, friends.Close())
		}
	}
	bar := b.Scratch(0, 0).Open("bar")
	fill(bar)
	require.NoError(t, bar.Close())
	require.Equal(t, 1<<8-1, parties)
}
