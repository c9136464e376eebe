package platform_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/platform"
	"github.com/upfront-mem/upfront/tests/step"
)

func hugeBytes(t *testing.T, r *platform.Reservation) (size int) {
	smaps, err := os.ReadFile("/proc/self/smaps")
	require.NoError(t, err)
	_, entry, found := strings.Cut(string(smaps), fmt.Sprintf("%x-", uintptr(r.Base())))
	require.True(t, found)
	_, text, found := strings.Cut(entry, "AnonHugePages:")
	require.True(t, found)
	_, err = fmt.Sscan(text, &size)
	require.NoError(t, err)
	return size * kib
}

// TestDirtyOfHugePages checks that the first write to a huge page splits it, and that small pages
// are reported after it.
func TestDirtyOfHugePages(t *testing.T) {
	platform.ForgetSpares()
	r := commit(t, 16*mib, 0)
	if err := r.HugePages(); err != nil {
		t.Skip("with transparent huge pages, go test ./platform runs it:", err)
	}
	granted, err := r.Prefault()
	require.NoError(t, err)
	require.True(t, granted)
	page := os.Getpagesize()
	k := track(t, r.Base(), r.Size())
	before := hugeBytes(t, r)
	if before == 0 {
		t.Skip("the system gave small pages: with huge ones that are free, go test ./platform runs it")
	}
	assert.Equal(t, before, hugeBytes(t, r), "to track splits nothing")
	exactly(t, k, r.Size())
	b := contents(r)
	for i := range b {
		sink += b[i]
	}
	exactly(t, k, r.Size()) // reads
	b[5*mib]++
	exactly(t, k, r.Size(), 5*mib/page)
	after := hugeBytes(t, r)
	t.Logf("%d bytes in huge pages, %d after one write", before, after)
	want := []int{}
	for offset := 0; offset < len(b); offset += mib {
		b[offset+page]++
		want = append(want, offset/page+1)
	}
	exactly(t, k, r.Size(), want...)
	assert.Zero(t, hugeBytes(t, r), "each was written to")
	clear(b)
	found, _ := dirty(t, k, r.Size())
	assert.Len(t, found, len(b)/page)
}

func TestDirtyOfLockedAndProtectedPages(t *testing.T) {
	page := os.Getpagesize()
	for _, locked := range []bool{false, true} {
		r := present(t, 16*edge/page)
		if locked {
			step.Machine(t, step.LockedMemory(r.Size()))
			require.NoError(t, r.Lock())
		}
		b := contents(r)
		before := statusBytes(t, "VmLck")
		k := track(t, r.Base(), r.Size())
		b[3*page]++
		require.NoError(t, r.Protect(4*edge, 2*edge))
		assert.False(t, readable(r, 5*edge))
		b[8*edge]++
		exactly(t, k, r.Size(), 3, 8*edge/page)
		require.NoError(t, r.Unprotect(4*edge, 2*edge))
		sink += b[4*edge]
		b[5*edge]++
		if !locked {
			exactly(t, k, r.Size(), 5*edge/page)
		} else { // the system writes to the pages of Unprotect to make them present
			found, _ := dirty(t, k, r.Size())
			assert.Subset(t, found, []int{5 * edge / page})
			assert.NotContains(t, found, 8*edge/page)
		}
		b[7*edge]++
		sink += b[5*edge]
		exactly(t, k, r.Size(), 7*edge/page)
		require.NoError(t, k.Close())
		assert.Equal(t, before, statusBytes(t, "VmLck"))
		require.NoError(t, r.Release())
	}
}
