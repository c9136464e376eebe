package main

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// work is a sequence of keys, as numbers. The cache is asked for each key, and a key that it
// doesn't have is set.
type work struct {
	name     string
	onlySets bool // no Gets

	// fill writes the keys. n is the number of entries of the asked bytes, without headers or
	// index.
	fill  func(keys []uint32, n int)
	times int // the least number of operations, as a multiple of n

	// warm says that the operations begin with the 1.5 n most wanted keys in random order, which
	// fill the cache.
	warm bool
}

// row is a work with goroutines that share its keys.
type row struct {
	work
	goroutines int
	name       string
}

// many is the number of keys of the distributions, as a multiple of the entries.
const many = 10

const seed = 46

var (
	// hotSet fits into each cache with its index. After the first half, each Get finds its key.
	hotSet = work{name: "Get", times: 1, fill: func(keys []uint32, n int) {
		r := rand.New(rand.NewPCG(seed, 1))
		hot := n / 5
		for i := range keys {
			keys[i] = uint32(r.IntN(hot))
			if i < len(keys)/2 {
				keys[i] = uint32(i % hot)
			}
		}
	}}
	// setting is of any of many keys: most are new, and evict others.
	setting = work{name: "Set", onlySets: true, times: 2, fill: func(keys []uint32, n int) {
		r := rand.New(rand.NewPCG(seed, 2))
		for i := range keys {
			keys[i] = uint32(r.IntN(many * n))
		}
	}}
	// loop returns to each key after a quarter more keys than the asked bytes have entries.
	loop = work{name: "loop", times: 5, fill: func(keys []uint32, n int) {
		for i := range keys {
			keys[i] = uint32(i % (n + n/4))
		}
	}}
	// shifting moves to other keys in 20 steps, by n keys in all.
	shifting = work{name: "Zipf 1.0, shifting", warm: true, times: 2, fill: func(keys []uint32, n int) {
		z, r := newZipf(many*n, 1), rand.New(rand.NewPCG(seed, 3))
		for i := range keys {
			keys[i] = uint32((z.rank(r) + i*20/len(keys)*(n/20)) % (many * n))
		}
	}}
	zipf08, zipf10, zipf12 = zipf(0.8), zipf(1), zipf(1.2)

	works = []work{zipf08, zipf10, zipf12, scanned(0.8), scanned(1), scanned(1.2), loop, shifting, hotSet, setting}
)

// zipf is work whose k-th most wanted key has a share proportional to 1/k^s.
func zipf(s float64) work {
	return work{name: fmt.Sprintf("Zipf %.1f", s), warm: true, times: 2, fill: func(keys []uint32, n int) {
		z, r := newZipf(many*n, s), rand.New(rand.NewPCG(seed, 4))
		for i := range keys {
			keys[i] = uint32(z.rank(r))
		}
	}}
}

// scanned has a scan of n/2 keys that never come back after each n other operations.
func scanned(s float64) work {
	return work{name: fmt.Sprintf("Zipf %.1f, scans", s), warm: true, times: 3, fill: func(keys []uint32, n int) {
		z, r := newZipf(many*n, s), rand.New(rand.NewPCG(seed, 5))
		next := many * n
		for i := range keys {
			if i%(n+n/2) < n {
				keys[i] = uint32(z.rank(r))
			} else {
				keys[i] = uint32(next)
				next++
			}
		}
	}}
}

// judged reports whether the hits of the work have a goal.
func (w work) judged() bool { return !w.onlySets && w.name != hotSet.name }

// isSpeed reports whether the time of the work has a goal.
func (w work) isSpeed() bool { return w.name == hotSet.name || w.name == setting.name }

func rowsOf(short bool) (rows []row) {
	one := []work{zipf08, zipf10, zipf12, scanned(0.8), scanned(1), scanned(1.2), loop, shifting}
	goroutines := []int{1, 2, 4}
	if short {
		one, goroutines = []work{zipf10}, []int{1}
	}
	for _, w := range one {
		rows = append(rows, row{w, 1, w.name})
	}
	for _, w := range []work{zipf10, hotSet, setting} {
		for _, g := range goroutines {
			name := fmt.Sprintf("%s, %d goroutines", w.name, g)
			if g == 1 {
				name = w.name
			}
			if g > 1 || w.isSpeed() {
				rows = append(rows, row{w, g, name})
			}
		}
	}
	return rows
}

// ranks draws ranks from 0 to n-1 with a Zipf distribution of any exponent, by rejection-inversion
// (W. Hörmann and G. Derflinger, "Rejection-inversion to generate variates from monotone discrete
// distributions", 1996).
type ranks struct {
	n, s, first, last, shift float64
}

func newZipf(n int, s float64) *ranks {
	z := &ranks{n: float64(n), s: s}
	z.first, z.last = z.integral(1.5)-1, z.integral(z.n+0.5)
	z.shift = 2 - z.inverse(z.integral(2.5)-z.density(2))
	return z
}

func (z *ranks) rank(r *rand.Rand) int {
	for {
		u := z.last + r.Float64()*(z.first-z.last)
		x := z.inverse(u)
		k := min(max(math.Floor(x+0.5), 1), z.n)
		if k-x <= z.shift || u >= z.integral(k+0.5)-z.density(k) {
			return int(k) - 1
		}
	}
}

func (z *ranks) density(x float64) float64 { return math.Pow(x, -z.s) }

func (z *ranks) integral(x float64) float64 {
	if z.s == 1 {
		return math.Log(x)
	}
	return (math.Pow(x, 1-z.s) - 1) / (1 - z.s)
}

func (z *ranks) inverse(x float64) float64 {
	if z.s == 1 {
		return math.Exp(x)
	}
	return math.Pow(max(0, 1+x*(1-z.s)), 1/(1-z.s))
}
