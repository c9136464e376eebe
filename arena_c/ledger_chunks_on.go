//go:build memtrace

package arena_c

import (
	"maps"
	"slices"
	"unsafe"
)

// poolOpened begins to book the chunks of a pool, which a scope of a row gave.
func poolOpened(l *Linear, p *Pool) {
	ledger.Lock()
	defer ledger.Unlock()
	if n := places.find(l.Row().address()).row; n != 0 && !places.put(place{address: p.address(), row: n}) {
		ledger.lost++
	}
}

// poolClosed books out the chunks that are live: their states may say already that they leave.
func poolClosed(p *Pool) {
	ledger.Lock()
	defer ledger.Unlock()
	if places.remove(p.address()).row == 0 || p.Open == 0 {
		return
	}
	for i := range p.Count() {
		loseChunk(p, p.Chunk(i))
	}
}

// gotChunk and putChunk are for each chunk that a pool gave, and took back; a pool on a block has no ledger.

func gotChunk(p *Pool, chunk unsafe.Pointer) {
	site := callSite()
	ledger.Lock()
	defer ledger.Unlock()
	n := places.find(p.address()).row
	if n == 0 {
		return
	}
	got := place{address: uintptr(chunk), line: ledger.rows[n].lineOf(site, true)}
	if got.line == 0 {
		ledger.lost++
		return
	}
	got.stack, got.samples = gain(got.line, p.Stride, 1)
	if !places.put(got) {
		ledger.lost++
		lose(got.line, got.stack, got.samples, p.Stride, 1)
	}
}

func putChunk(p *Pool, chunk unsafe.Pointer) {
	ledger.Lock()
	defer ledger.Unlock()
	if places.find(p.address()).row != 0 {
		loseChunk(p, chunk)
	}
}

func loseChunk(p *Pool, chunk unsafe.Pointer) {
	was := places.remove(uintptr(chunk))
	lose(was.line, was.stack, was.samples, p.Stride, 1)
}

// Sites are the figures of the row. Any goroutine may ask.
func (r *Row) Sites() (list []SiteFigures) {
	ledger.Lock()
	defer ledger.Unlock()
	for n := ledger.rows[places.find(r.address()).row].lines; n != 0; {
		x := ledger.lines.at(n)
		f := SiteFigures{Site: x.site, Chunks: x.chunks, Live: x.live, Peak: x.peak, Total: x.total}
		for at := x.stacks; at != 0; {
			s := ledger.stacks.at(at)
			f.Stacks = append(f.Stacks, StackFigures{s.calls, s.live, s.total})
			at = s.below
		}
		list, n = append(list, f), x.below
	}
	return list
}

// Made is what is live in an open scope, or in the far end, by site, most bytes first. Chunks of pools are not in it.
func (l *Linear) Made() []SiteFigures {
	row, live := l.Row(), map[uint32]SiteFigures{}
	ledger.Lock()
	defer ledger.Unlock()
	g := ledger.rows[places.find(row.address()).row]
	n, from, to := g.near, l.Start, l.Cursor
	if l == row.Far() {
		n, from, to = g.far, 0, OffsetMax
	}
	for ; n != 0; n = ledger.runs.at(n).below {
		r := ledger.runs.at(n)
		for i := range r.n {
			if at := r.at + i*r.stride; at >= from && at < to {
				f := live[r.line]
				f.Site = ledger.lines.at(r.line).site
				f.Live.Bytes += r.size
				f.Live.Objects += uint64(r.objects)
				live[r.line] = f
			}
		}
	}
	return slices.SortedFunc(maps.Values(live), func(a, b SiteFigures) int {
		if a.Live.Bytes != b.Live.Bytes {
			return int(int64(b.Live.Bytes) - int64(a.Live.Bytes))
		}
		return int(a.Site) - int(b.Site)
	})
}
