package budget

import (
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestGoroutine: those that live have different ones, each has one for life, through growth of its stack, other threads and
// collections; the stack trace says who is who.
func TestGoroutine(t *testing.T) {
	var names sync.Map // by goroutine
	var started, all sync.WaitGroup
	started.Add(200)
	together := make(chan bool)
	for range 200 {
		all.Go(func() {
			me, name := goroutine(), traced()
			before, taken := names.LoadOrStore(me, name)
			assert.False(t, taken, "%s has what %v has", name, before)
			started.Done()
			<-together
			for depth := range 50 {
				runtime.Gosched()
				assert.Equal(t, me, deeper(10*depth))
			}
			assert.Equal(t, name, traced())
		})
	}
	started.Wait() // one that ended may leave what it had to the next
	close(together)
	runtime.GC()
	all.Wait()
	assert.NotEqual(t, goroutine(), func() (other uintptr) {
		all.Go(func() { other = goroutine() })
		all.Wait()
		return
	}(), "the control: another has another")
	assert.Zero(t, testing.AllocsPerRun(100, func() { goroutine() }))
}

// deeper asks from below so many frames of 256 bytes.
func deeper(depth int) uintptr {
	var frame [256]byte
	if depth == 0 {
		return goroutine()
	}
	frame[depth%256] = 1
	me := deeper(depth - 1)
	runtime.KeepAlive(&frame)
	return me
}

func traced() string {
	var trace [64]byte
	name, _, _ := strings.Cut(string(trace[:runtime.Stack(trace[:], false)]), " [")
	return name
}
