package main

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

const keySize = 16

// least is the number of operations of a work with few entries.
const least = 600_000

// do does the task in this process: the first half of the operations warms the cache. The second
// half is measured. In a further quarter each single operation is timed.
func (t task) do() (r result, err error) {
	i := slices.IndexFunc(works, func(w work) bool { return w.name == t.Work })
	if i < 0 {
		return r, fmt.Errorf("no work %q", t.Work)
	}
	w, entries := works[i], asked/(keySize+t.Size)
	p, err := find(t.Who)
	if err != nil {
		return r, err
	}
	count := max(least, w.times*entries)
	if t.Short {
		count /= 4
	}
	// The keys are outside of the Go heap, because the collector works less often in a large heap.
	warm := 0
	if w.warm {
		warm = entries + entries/2
	}
	keys, err := mapped(warm + count + count/4)
	if err != nil {
		return r, err
	}
	for i := range keys[:warm] {
		keys[i] = uint32(i)
	}
	rand.New(rand.NewPCG(seed, 6)).Shuffle(warm, func(i, k int) { keys[i], keys[k] = keys[k], keys[i] })
	keys, first := keys[warm:], keys[:warm]
	w.fill(keys, entries)
	c, err := p.make(t.Limit, t.Size)
	if err != nil {
		return r, err
	}
	l := newLanes(c, t.Size, t.Goroutines)
	l.sets = w.onlySets
	l.run(first, 1)
	l.run(keys[:count/2], t.Goroutines)
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	found, _ := l.run(keys[count/2:count], t.Goroutines)
	ns := time.Since(start).Nanoseconds()
	runtime.ReadMemStats(&after)
	l.timed = true
	_, slowest := l.run(keys[count:], t.Goroutines)
	n := float64(count - count/2)
	r = result{
		Hits: 100 * float64(found) / n, Time: float64(ns) / n, Garbage: float64(after.TotalAlloc-before.TotalAlloc) / n,
		Collections: 1e6 * float64(after.NumGC-before.NumGC) / n, Longest: float64(slowest.Nanoseconds()) / 1e3,
	}
	r.Resident, err = residentNow()
	if t.Counted {
		r.Payload = l.payload(many * entries)
	}
	runtime.KeepAlive(c)
	return r, err
}

// mapped returns keys that aren't on the Go heap. They live until the process ends.
func mapped(count int) ([]uint32, error) {
	block, err := syscall.Mmap(-1, 0, 4*count, syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return nil, err
	}
	return unsafe.Slice((*uint32)(unsafe.Pointer(&block[0])), count), nil
}

var vmRSS = regexp.MustCompile(`(?m)^VmRSS:\s+(\d+) kB$`)

// residentNow returns the resident bytes of the process after a collection, when Go's free memory
// has gone back to the system.
func residentNow() (float64, error) {
	debug.FreeOSMemory()
	debug.FreeOSMemory() // of values whose finalizers the first collection ran
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	found := vmRSS.FindSubmatch(text)
	if found == nil {
		return 0, fmt.Errorf("/proc/self/status has no VmRSS")
	}
	kib, err := strconv.Atoi(string(found[1]))
	return 1024 * float64(kib), err
}

// lanes are goroutines that use a contestant.
type lanes struct {
	contestant
	sets, timed     bool
	size            int // of a value
	values, buffers [][]byte
}

func newLanes(c contestant, size, goroutines int) *lanes {
	l := &lanes{contestant: c, size: size}
	for range goroutines {
		l.values, l.buffers = append(l.values, make([]byte, size)), append(l.buffers, make([]byte, size))
	}
	return l
}

// run uses the cache for each key, which goroutines take in turn. It returns the number of Gets
// that found their key and, if operations are timed, the longest operation.
func (l *lanes) run(keys []uint32, goroutines int) (found int, slowest time.Duration) {
	if goroutines == 1 {
		return l.every(keys, 0, 1)
	}
	var wait sync.WaitGroup
	var all sync.Mutex
	for first := range goroutines {
		wait.Go(func() {
			n, longest := l.every(keys, first, goroutines)
			all.Lock()
			defer all.Unlock()
			found, slowest = found+n, max(slowest, longest)
		})
	}
	wait.Wait()
	return found, slowest
}

// every uses the cache for each step-th key. A value starts with its key.
func (l *lanes) every(keys []uint32, first, step int) (found int, slowest time.Duration) {
	value, buffer := l.values[first], l.buffers[first]
	var key [keySize]byte
	var start time.Time
	for i := first; i < len(keys); i += step {
		name(&key, keys[i])
		if l.timed {
			start = time.Now()
		}
		known := false
		if !l.sets {
			var got []byte
			if got, known = l.get(buffer[:0], key[:]); known {
				if len(got) != l.size || [keySize]byte(got) != key {
					panic(fmt.Sprintf("the value of key %x is %x", key, got))
				}
				found++
			}
		}
		if !known {
			copy(value, key[:])
			l.set(key[:], value)
		}
		if l.timed {
			slowest = max(slowest, time.Since(start))
		}
	}
	return found, slowest
}

// sampled is the share of keys that payload asks for.
const sampled = 8

// payload returns the bytes of the first keys in the cache and of their values, from a sample.
func (l *lanes) payload(keys int) float64 {
	n, buffer := 0, l.buffers[0]
	var key [keySize]byte
	for k := 0; k < keys; k += sampled {
		name(&key, uint32(k))
		if _, ok := l.get(buffer[:0], key[:]); ok {
			n++
		}
	}
	return float64(sampled * n * (keySize + l.size))
}

// name writes the key of a number.
func name(key *[keySize]byte, number uint32) {
	x := (uint64(number) + 1) * 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	binary.LittleEndian.PutUint64(key[:], x^x>>27)
	binary.LittleEndian.PutUint64(key[8:], uint64(number))
}
