package main

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// warmRuntime lets the Go runtime take now what it would else take in the middle
// of play, on the Go heap: a thread, seven objects, when all others are busy or
// wait in the kernel; and a list of timers, one object, when a processor gets
// its first. Neither is ever given back, so having had enough once is enough.
func warmRuntime() {
	processors := runtime.GOMAXPROCS(0)
	threads := processors + 4 // all run while some wait in the kernel
	var ready, done, timers sync.WaitGroup
	var running atomic.Int32
	leave := make(chan struct{})
	ready.Add(threads)
	for i := range threads {
		done.Go(func() {
			runtime.LockOSThread() // a thread of its own
			defer runtime.UnlockOSThread()
			if i < processors {
				running.Add(1)
				for running.Load() < int32(processors) {
					// Nobody gives way, so each is on a processor of its own.
				}
				for range 8 {
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
