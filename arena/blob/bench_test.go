package blob_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena/blob"
)

func BenchmarkVerify(b *testing.B) {
	const n = 50_000
	b.Run("rooms", func(b *testing.B) { // each with an array of one link
		w := rooms.Writer(aligned(8 << 20))
		last := blob.Put(w, Room{})
		for range n {
			last = blob.Put(w, Room{Exits: blob.PutAll(w, last)})
		}
		measure(b, rooms, w, last, 2*n)
	})
	b.Run("steps", func(b *testing.B) { // variants of a union
		w := rooms.Writer(aligned(8 << 20))
		room := blob.Put(w, Room{})
		last := blob.PutAs(w, says, Say{})
		for range n {
			last = blob.PutAs(w, says, Say{Step: Step{Next: last}, What: w.Str("swim")})
			last = blob.PutAs(w, goes, Go{Step: Step{Next: last}, To: room})
		}
		measure(b, rooms, w, blob.Put(w, Room{First: last}), 2*n)
	})
	b.Run("links", func(b *testing.B) { // in one array
		type leaf struct{ To blob.Link[leaf] }
		type list struct {
			All blob.Array[blob.Link[leaf]]
		}
		lists := blob.Of[list]()
		w := lists.Writer(aligned(8 << 20))
		all := blob.PutAll(w, make([]leaf, n)...)
		links := make([]blob.Link[leaf], n)
		for i := range links {
			links[i] = blob.At(all, i*7919%n) // in no order
		}
		measure(b, lists, w, blob.Put(w, list{blob.PutAll(w, links...)}), n)
	})
	b.Run("floats", func(b *testing.B) { plain[float32](b) })
	b.Run("vectors", func(b *testing.B) { plain[Vec](b) })
	b.Run("bools", func(b *testing.B) { plain[bool](b) }) // each is checked
}

func plain[T any](b *testing.B) {
	type list struct{ All blob.Array[T] }
	lists := blob.Of[list]()
	w := lists.Writer(aligned(16 << 20))
	measure(b, lists, w, blob.Put(w, list{blob.PutAll(w, make([]T, 1<<20)...)}), 0)
}

func measure[T any](
	b *testing.B, f blob.Format[T], w *blob.Writer[T], root blob.Link[T], nodes int,
) {
	data, err := w.Finish(root)
	require.NoError(b, err)
	scratch := make([]byte, blob.ScratchSize(data))
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, _, err := f.Verify(data, scratch); err != nil {
			b.Fatal(err)
		}
	}
	if nodes != 0 {
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*nodes), "ns/node")
	}
}
