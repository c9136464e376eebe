package main

import (
	"errors"
	"hash/crc32"
	"math/rand/v2"
	"unsafe"

	"github.com/upfront-mem/upfront/arena/blob"
)

const (
	nodesV = 2_000
	plainV = 4096 // KiB
)

var workV = work{
	letter: "V", title: "verification of an untrusted blob: 2,000 nodes, each with two " +
		"links; an array of 4 MiB of numbers, where 1 GB/s is 1024 ns a KiB",
	absent: "Hand-written Go knows the one type of these nodes, or takes the checksum alone.",
	loops: []loop{
		{name: "V verify nodes", unit: "node", units: nodesV, enter: enterNodes},
		{name: "V verify numbers", unit: "KiB", units: plainV, enter: enterNumbers},
	},
}

type nodeV struct {
	Next, Other blob.Link[nodeV]
	Kind, Value uint32
}

type numbersV struct{ All blob.Array[float32] }

var (
	formatNodes   = blob.Of[nodeV]()
	formatNumbers = blob.Of[numbersV]()
	castagnoli    = crc32.MakeTable(crc32.Castagnoli)
)

// alignedV returns a block aligned for a blob.
func alignedV(size int) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(make([]uint64, size/8)))), size)
}

//go:noinline
func enterNodes() []contestant {
	w := formatNodes.Writer(alignedV(1 << 20))
	all, r := blob.PutAll(w, make([]nodeV, nodesV)...), rand.New(rand.NewPCG(21, 1))
	for i := range nodesV {
		node := nodeV{Other: blob.At(all, r.IntN(nodesV)), Value: uint32(i) + 1}
		if i+1 < nodesV {
			node.Next = blob.At(all, i+1)
		}
		blob.Set(w, blob.At(all, i), node)
	}
	data, err := w.Finish(blob.At(all, 0))
	if err != nil {
		panic(err)
	}
	h := newByHandV(data)
	return []contestant{verifying(formatNodes, data, func(root *nodeV) uint32 { return root.Value }),
		{who: byHand, run: func(n int) (value uint64) {
			for range n {
				if value, err = h.look(); err != nil {
					panic(err)
				}
			}
			return value
		}}}
}

//go:noinline
func enterNumbers() []contestant {
	w := formatNumbers.Writer(alignedV(plainV*1024 + 4096))
	all := blob.PutAll(w, make([]float32, plainV*256)...)
	data, err := w.Finish(blob.Put(w, numbersV{all}))
	if err != nil {
		panic(err)
	}
	c := verifying(formatNumbers, data, func(root *numbersV) uint32 { return uint32(root.All.Len()) })
	return []contestant{c, {who: byHand, other: true, run: func(n int) (sum uint64) {
		for range n {
			sum = uint64(crc32.Checksum(data, castagnoli))
		}
		return sum
	}}}
}

//go:noinline
func verifying[T any](f blob.Format[T], data []byte, value func(*T) uint32) contestant {
	scratch := alignedV((blob.ScratchSize(data) + 7) &^ 7)
	return contestant{who: library, run: func(n int) (sum uint64) {
		for range n {
			root, _, err := f.Verify(data, scratch)
			if err != nil {
				panic(err)
			}
			sum = uint64(value(root))
		}
		return sum
	}}
}

// byHandV follows links of nodeV and of no other type. Such nodes can't overlap, so a bit for each
// place is enough to mark visited nodes.
type byHandV struct {
	data  []byte
	words []uint32
	queue []uint32
	seen  []uint64
}

func newByHandV(data []byte) *byHandV {
	words := unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(data))), len(data)/4)
	return &byHandV{data, words, make([]uint32, 0, nodesV), make([]uint64, len(data)/256+1)}
}

var errByHand = errors.New("no good blob")

func (h *byHandV) look() (value uint64, err error) {
	const headerSize, nodeSize = 32, 16
	sum := crc32.Update(0, castagnoli, h.data[:28])
	if crc32.Update(sum, castagnoli, h.data[headerSize:]) != h.words[7] {
		return 0, errByHand
	}
	clear(h.seen)
	root, end := h.words[4], h.words[5]
	queue := append(h.queue[:0], root)
	h.seen[root/256] |= 1 << (root / 4 % 64)
	for next := 0; next < len(queue); next++ {
		at := queue[next] / 4
		for _, to := range h.words[at : at+2] {
			if to == 0 {
				continue
			}
			if to < headerSize || to%4 != 0 || to > end-nodeSize {
				return 0, errByHand
			}
			if place, bit := to/256, uint64(1)<<(to/4%64); h.seen[place]&bit == 0 {
				h.seen[place] |= bit
				queue = append(queue, to)
			}
		}
	}
	return uint64(h.words[root/4+3]), nil
}
