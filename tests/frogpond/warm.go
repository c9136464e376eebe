package main

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// warmRuntime makes the Go runtime allocate now, not in the middle of play. A new thread
// allocates on the Go heap; the runtime starts it when all others are busy or wait in the kernel. A
// processor's first timer also allocates. So does a goroutine, such as a timer's, if more of them
// run at once than before. The runtime reuses all three, so one warm-up is enough.
func warmRuntime() {
	processors := runtime.GOMAXPROCS(0)
	threads := processors + 4 // all processors run while some threads wait in the kernel
	var ready, done, timers sync.WaitGroup
	var running atomic.Int32
	leave := make(chan struct{})
	ready.Add(threads)
	for i := range threads {
		done.Go(func() {
			runtime.LockOSThread() // forces a thread of its own
			defer runtime.UnlockOSThread()
			if i < processors {
				running.Add(1)
				for running.Load() < int32(processors) {
					// No goroutine yields, so each is on a processor of its own.
				}
				for range 32 {
					timers.Add(1)
					time.AfterFunc(time.Millisecond, timers.Done)
				}
			}
			ready.Done()
			<-leave
		})
	}
	ready.Wait()
	close(leave)
	done.Wait()
	timers.Wait()
}
