package step

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// starting is the variable that says how a child of TestStartEndsWithTheProcess starts its own.
const starting = "UPFRONT_STEP_STARTING"

// TestStartEndsWithTheProcess kills a process whose child waits for input. The child ends as well.
// The control: the child of a plain cmd.Start lives on.
func TestStartEndsWithTheProcess(t *testing.T) {
	if how := os.Getenv(starting); how != "" {
		startsAndWaits(how)
	}
	for _, how := range []string{"step", "plain"} {
		t.Run(how, func(t *testing.T) {
			read, write, err := os.Pipe()
			require.NoError(t, err)
			defer read.Close()
			parent := exec.Command(os.Args[0], "-test.run=^TestStartEndsWithTheProcess$")
			parent.Env = append(os.Environ(), starting+"="+how)
			parent.Stdout, parent.Stderr = write, os.Stderr
			// The child of a killed parent has the end of a pipe that keeps it waiting.
			hold, held, err := os.Pipe()
			require.NoError(t, err)
			defer held.Close()
			parent.Stdin = hold
			require.NoError(t, Start(parent))
			require.NoError(t, write.Close())
			require.NoError(t, hold.Close())

			out := bufio.NewReader(read)
			line, err := out.ReadString('\n')
			require.NoError(t, err)
			require.Equal(t, "the thread has ended\n", line)
			_, err = fmt.Fprintln(held, "frog")
			require.NoError(t, err)
			line, err = out.ReadString('\n')
			require.NoError(t, err)
			require.Equal(t, "frog\n", line, "it runs on")
			require.NoError(t, parent.Process.Kill())
			require.Error(t, parent.Wait())
			if how == "plain" {
				_, err = fmt.Fprintln(held, "toad")
				require.NoError(t, err)
				line, err = out.ReadString('\n')
				require.NoError(t, err)
				assert.Equal(t, "toad\n", line, "control")
				return // the end of its input ends the child
			}
			rest, err := io.ReadAll(out) // ends with the last process that has the file
			assert.NoError(t, err)
			assert.Empty(t, rest)
		})
	}
}

// startsAndWaits starts cat on a thread that ends, prints a line, and waits to be killed.
func startsAndWaits(how string) {
	start := Start
	if how == "plain" {
		start = (*exec.Cmd).Start
	}
	thread, cmd := make(chan int), exec.Command("cat")
	var starts func()
	starts = func() {
		runtime.LockOSThread()              // the thread ends with the goroutine
		if unix.Gettid() == unix.Getpid() { // but the first thread doesn't
			go starts()
			select {}
		}
		cmd.Stdin, cmd.Stdout = os.Stdin, os.Stdout
		if err := start(cmd); err != nil {
			panic(err)
		}
		thread <- unix.Gettid()
	}
	go starts()
	task := fmt.Sprintf("/proc/self/task/%d", <-thread)
	for gone := false; !gone; time.Sleep(time.Millisecond) {
		_, err := os.Stat(task)
		gone = os.IsNotExist(err)
	}
	fmt.Println("the thread has ended")
	fmt.Println(cmd.Wait()) // not before this process is killed
	os.Exit(1)
}
