package platform

import (
	"runtime"
	"sync"
	"testing"
)

// TestAppendAnonymousDuringCollections: an address in the Go heap's range, which may be free, isn't
// a pointer that the collector finds.
func TestAppendAnonymousDuringCollections(t *testing.T) {
	blocks := make([][]byte, 128) // of 128 MiB that are free then
	for i := range blocks {
		blocks[i] = make([]byte, 1<<20)
	}
	runtime.KeepAlive(blocks)
	clear(blocks)
	var all sync.WaitGroup
	ended := make(chan struct{})
	all.Go(func() {
		for {
			select {
			case <-ended:
				return
			default:
				runtime.GC()
			}
		}
	})
	var list []Mapping
	for range 500 {
		var err error
		if list, _, err = AppendAnonymous(list[:0], nil); err != nil {
			t.Log(err)
			break
		}
	}
	close(ended)
	all.Wait()
	runtime.KeepAlive(blocks)
}
