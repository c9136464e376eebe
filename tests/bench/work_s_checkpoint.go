package main

import (
	"database/sql"
	"math/rand/v2"
	"os"
	"path/filepath"

	_ "github.com/mattn/go-sqlite3"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/save"
)

// The other ways to keep a state outside of the process.
const (
	fileWrite = "write to a file"
	sqliteWAL = "SQLite's WAL"
)

// tmpfsS returns a new folder, in memory if possible, and the function that removes it.
func tmpfsS() (dir string, remove func()) {
	dir, err := os.MkdirTemp("/dev/shm", "upfront-bench-")
	if err != nil {
		dir, err = os.MkdirTemp("", "upfront-bench-")
	}
	mustS(err)
	return dir, func() { mustS(os.RemoveAll(dir)) }
}

// checkpointS returns the checkpoint of a ring. Its file has no name any more.
func checkpointS(ring *save.Ring) *save.Checkpoint {
	dir, remove := tmpfsS()
	defer remove()
	file, err := save.OpenCheckpoints(filepath.Join(dir, "pond"),
		save.CheckpointPlan{Slots: 1, Size: uint64(ring.Size()) + 64*budget.KiB, Own: 64})
	mustS(err)
	checkpoint, err := file.Attach(0, ring)
	mustS(err)
	return checkpoint
}

// enterCheckpoint plays a tick of 80 changed lines, takes a snapshot of 20 KiB, and writes it. The
// others write as many bytes to the same file system. SQLite doesn't wait for a disk either
// (synchronous=OFF).
//
//go:noinline
func enterCheckpoint() []contestant {
	const size = 20 * budget.KiB
	all, ring := bytesS(budget.RegionPlan{Name: "level", Size: 256 * budget.KiB, State: true}, size, 2)
	tick := func() {
		for at := 0; at < size; at += 256 {
			all[at]++
		}
	}
	checkpoint, own := checkpointS(ring), make([]byte, 20)
	dir, remove := tmpfsS()
	file, err := os.Create(filepath.Join(dir, "file"))
	mustS(err)
	db, err := sql.Open("sqlite3", filepath.Join(dir, "db")+"?_journal_mode=WAL&_synchronous=OFF")
	mustS(err)
	db.SetMaxOpenConns(1)
	_, err = db.Exec("CREATE TABLE room (id INTEGER PRIMARY KEY, state BLOB); INSERT INTO room VALUES (1, NULL)")
	mustS(err)
	update, err := db.Prepare("UPDATE room SET state = ? WHERE id = 1")
	mustS(err)
	to := make([]byte, size)
	return []contestant{
		{who: library, run: func(n int) uint64 {
			for i := range n {
				tick()
				mustS(ring.Take(uint64(i)))
				mustS(checkpoint.Write(uint64(i), own))
			}
			return 0
		}},
		{who: byHand, run: func(n int) uint64 {
			for range n {
				tick()
				copy(to, all)
			}
			return 0
		}},
		{who: fileWrite, run: func(n int) uint64 {
			for range n {
				tick()
				_, err := file.WriteAt(all, 0)
				mustS(err)
			}
			return 0
		}},
		{who: sqliteWAL, run: func(n int) uint64 {
			for range n {
				tick()
				_, err := update.Exec(all)
				mustS(err)
			}
			return 0
		}, end: func() {
			mustS(db.Close())
			mustS(file.Close())
			remove()
		}}}
}

// enterCheckpointTracked writes two snapshots of a tracked state, which differ in 163 pages, each
// into both images in turn. So each Write copies these pages, without the scan of a Take.
//
//go:noinline
func enterCheckpointTracked() []contestant {
	const differ = 163
	all, ring := bytesS(budget.RegionPlan{Name: "level", Size: trackedS + budget.MiB, State: true, Track: true},
		trackedS, 2)
	pages := rand.New(rand.NewPCG(22, 5)).Perm(trackedS / 4096)[:differ]
	for i := range uint64(12) { // the first rounds report the load's writes
		for _, page := range pages {
			all[4096*page]++
		}
		mustS(ring.Take(i % 2))
	}
	checkpoint, to := checkpointS(ring), make([]byte, trackedS)
	for i := range 4 {
		mustS(checkpoint.Write(uint64(i/2), nil))
	}
	return []contestant{
		{who: library, run: func(n int) uint64 {
			for i := range n {
				mustS(checkpoint.Write(uint64(i/2%2), nil))
			}
			return 0
		}},
		{who: byHand, run: func(n int) uint64 {
			for range n {
				for _, page := range pages {
					copy(to[4096*page:][:4096], all[4096*page:])
				}
			}
			return 0
		}}}
}
