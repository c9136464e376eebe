package step

import (
	"os/exec"
	"runtime"
	"sync"
)

// starts runs functions on a thread that lives as long as the process.
var starts = sync.OnceValue(func() chan<- func() {
	calls := make(chan func())
	go func() {
		runtime.LockOSThread()
		for call := range calls {
			call()
		}
	}()
	return calls
})

// Start is cmd.Start for a program that runs until a test ends it, such as a server. On Linux the
// program is killed when this process ends, also by SIGKILL. Elsewhere it runs on. Linux sends the
// signal when the thread that started the program ends; therefore Start uses a thread that lives as
// long as the process.
func Start(cmd *exec.Cmd) (err error) {
	diesWithParent(cmd)
	done := make(chan struct{})
	starts() <- func() {
		defer close(done)
		err = cmd.Start()
	}
	<-done
	return err
}
