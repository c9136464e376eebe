package save_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
	"unsafe"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/scope"
)

func TestPackSpeed(t *testing.T) {
	for _, mean := range []uint64{64, 256, 1000, 4000} {
		for _, size := range []int{16 << 20, 64 << 20} {
			b, _ := budget.Open(budget.Plan{Name: "match", Regions: []budget.RegionPlan{{Name: "room", Size: 200 * budget.MiB, State: true}}})
			var heap arena.Heap
			var ring *save.Ring
			room := b.Region("room")
			_, err := budget.Load(context.Background(), room, func(s scope.Scope) (*match, error) {
				state, m := save.Begin(room, s, matchMaker)
				heap, _ = arena.NewHeap(s.BytesUnzeroed(size, 64), 256)
				heap.MayLive()
				state.Heap(heap, 8<<20)
				ring = save.NewRing(s, 4, state)
				return m, nil
			})
			if err != nil {
				t.Fatal(err)
			}
			r := rand.New(rand.NewPCG(1, 2))
			var live []unsafe.Pointer
			for heap.Stats().Used < 9<<20 {
				n := r.Uint64N(2 * mean)
				p := heap.Alloc(n, 16)
				x := unsafe.Slice((*byte)(p), n)
				for i := range x {
					x[i] = 1
				}
				live = append(live, p)
			}
			for heap.Stats().Used > 5<<20 {
				i := r.IntN(len(live))
				heap.Free(live[i])
				live[i] = live[len(live)-1]
				live = live[:len(live)-1]
			}
			used := heap.Stats().Used
			y := make([]byte, used)
			var xs [5][]byte
			for i := range xs {
				xs[i] = make([]byte, used)
				for k := range xs[i] { xs[i][k] = 1 }
			}
			least := func(old, d time.Duration) time.Duration {
				if old == 0 || d < old {
					return d
				}
				return old
			}
			var c, tk, rs time.Duration
			for k := range 60 {
				s := time.Now()
				copy(xs[k%5], y)
				if k > 4 { c = least(c, time.Since(s)) }
				s = time.Now()
				if err := ring.Take(uint64(k % 4)); err != nil {
					t.Fatal(err)
				}
				if k > 4 {
					tk = least(tk, time.Since(s))
				}
				s = time.Now()
				if err := ring.Restore(context.Background(), uint64(k/2%2)); err != nil && k > 4 {
					t.Fatal(err)
				}
				if k > 4 {
					rs = least(rs, time.Since(s))
				}
			}
			fmt.Println(mean, size>>20, "live", len(live), "used", used, "image", ring.Used(0), "memcpy", c, "take", tk, "restore", rs, float64(tk)/float64(c), float64(rs)/float64(c))
			b.Close()
		}
	}
}
