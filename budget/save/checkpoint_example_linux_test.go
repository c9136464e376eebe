package save_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/save"
)

// A match outlives its process. Here two calls stand for two processes.
func ExampleOpenCheckpoints() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	name := filepath.Join(dir, "match") // on a server: /dev/shm/match
	play := func() error {
		m, ring, done := matchRing()
		defer done()
		plan := save.CheckpointPlan{Slots: 1, Size: 16 * budget.KiB, Own: 16}
		file, err := save.OpenCheckpoints(name, plan)
		if errors.Is(err, save.ErrRefused) { // of another version of the game
			return errors.Join(err, os.Rename(name, name+".refused"))
		} else if err != nil {
			return err
		}
		defer file.Close()
		checkpoint, err := file.Attach(0, ring)
		if err != nil {
			return err
		}
		for range file.All() {
			_, own, err := checkpoint.Restore(context.Background())
			if err != nil {
				return err
			}
			fmt.Printf("the %s goes on at %v\n", own, *m)
		}
		for range 3 {
			m.step([2]input{{Move: 5}})
			if err := checkpoint.Write(m.Tick, []byte("lobby")); err != nil {
				return err
			}
		}
		if m.Tick == 6 { // the match ends
			return checkpoint.Clear()
		}
		return file.Sync()
	}
	fmt.Println(play(), play(), play())
	// Output:
	// the lobby goes on at {3 [65 0]}
	// <nil> <nil> <nil>
}
