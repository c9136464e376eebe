//go:build unix

package scope_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// Andreas Fredriksson, "Scope Stack Allocation", idea by idea; the last column names an example here or beside it.
//
//	memory map, partitioned once  budget.Plan: init, systems, level; Load, Rewind   initSystemsLevel
//	LinearAllocator, rewind       the arena of a region; scratch; arena.Linear    frogSystem
//	ScopeStack, nested scopes     Scope: Open and Close, or Do                      demoAsMeant, demoAsPublished
//	newPOD                        Plain: New, Slice                                 frogSystem
//	newObject                     Object: New, Make, Slice                          frogSystemWithLock
//	finalizer chain               the chain; Close, Rewind and Load run it          ExampleScope
//	thread-local scratch          scratch, held by handle; two a worker (Pick)    formatString
//	PIMPL, free of charge         a struct behind arena.Ptr                         hiddenStruct
//	array of unknown size         Builder on scratch                              arrayOfUnknownSize
//	dynamic lifetimes             Pool, HandlePool, SharedPool                      objectPool
//	malloc and its fragments      arena.Heap, for C libraries                       sushiBarOnHeap, sushiBarInScopes
//
// What differs: newPOD takes any T, Plain refuses one that holds a Go pointer. There a covered scope goes on allocating
// where its child will rewind; here it refuses, by name. There the end of memory is an assert; here full is an answer.
// There scratch is a thread's; goroutines move between threads. There constructors can't fail.

// openTalk opens a budget with the memory map of the talk: init, systems and level, and a worker's scratch arenas beside them.
func openTalk() *budget.Budget {
	b, err := budget.Open(budget.Plan{
		Name: "talk",
		Regions: []budget.RegionPlan{
			{Name: "init", Size: 64 * budget.KiB},
			{Name: "systems", Size: 64 * budget.KiB},
			{Name: "level", Size: 64 * budget.KiB},
		},
		Scratch: budget.ScratchPlan{Workers: 1, Size: 64 * budget.KiB},
	})
	if err != nil {
		panic(err)
	}
	return b
}

// FrogInfo is plain data.
type FrogInfo struct{ X, Y, Age int32 }

// FrogSystem knows its frogs by an offset, so it is plain data too, and lies beside them.
type FrogSystem struct{ Frogs arena.Slice[FrogInfo] }

var (
	frogInfos   = scope.Plain[FrogInfo]()
	frogSystems = scope.Plain[FrogSystem]()
)

// A system that is made of plain data. How many frogs there can be is known when it is made; nothing in it wants to be
// cleaned up, so the rewind only moves the cursor back.
func Example_frogSystem() {
	b := openTalk()
	defer b.Close()
	ctx, region := context.Background(), b.Region("systems")
	base := region.Base()

	loaded, err := budget.Load(ctx, region, func(s scope.Scope) (*FrogSystem, error) {
		system := frogSystems.New(s)
		system.Frogs = arena.SliceOf(base, frogInfos.Slice(s, 32)) // zeroed; all there will ever be
		return system, nil
	})
	if err != nil {
		panic(err)
	}
	frogs := loaded.Get().Frogs.Get(base)
	frogs[7].Age++
	fmt.Println(len(frogs), "frogs and their system have", region.Report().Used, "bytes")

	fmt.Println("rewind:", region.Rewind(ctx))
	fmt.Println("then", region.Report().Used, "bytes, and", loaded.Get())
	// Output:
	// 32 frogs and their system have 400 bytes
	// rewind: <nil>
	// then 0 bytes, and <nil>
}

// Lock is a kernel object: giving memory back doesn't give it back. Its number is plain data.
type Lock struct{ FD int }

// take gets hold of a directory for this program alone.
func (l *Lock) take(directory string) (err error) {
	if l.FD, err = syscall.Open(directory, syscall.O_RDONLY|syscall.O_CLOEXEC, 0); err != nil {
		return err
	}
	if err = syscall.Flock(l.FD, syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return errors.Join(err, syscall.Close(l.FD))
	}
	return nil
}

func (l *Lock) release() error {
	fmt.Println("the pond is released")
	return syscall.Close(l.FD)
}

var locks = scope.Object((*Lock).release)

// A system that holds a lock. The lock has a finalizer; the system needs none, nobody keeps a list of what to clean up,
// and a system that can't have the lock leaves nothing behind.
func Example_frogSystemWithLock() {
	b := openTalk()
	defer b.Close()
	pond, err := os.MkdirTemp("", "pond")
	if err != nil {
		panic(err)
	}
	defer os.Remove(pond)

	run := func(s scope.Scope) error {
		system := frogSystems.New(s)
		system.Frogs = arena.SliceOf(b.Base(), frogInfos.Slice(s, 32))
		_, err := locks.Make(s, func(l *Lock) error { return l.take(pond) }) // is linked when it has succeeded
		if err != nil {
			return err
		}
		fmt.Println("the pond is ours")
		return nil
	}
	scratch := b.Scratch(0, 0)
	err = scratch.Do("first", func(s scope.Scope) error {
		if err := run(s); err != nil {
			return err
		}
		before := scratch.Stats().Used
		fmt.Println("second:", s.Do("second", run))
		fmt.Println("it left", scratch.Stats().Used-before, "bytes")
		return nil
	})
	fmt.Println("first:", err)
	fmt.Println("third:", scratch.Do("third", run))
	// Output:
	// the pond is ours
	// second: resource temporarily unavailable
	// it left 0 bytes
	// the pond is released
	// first: <nil>
	// the pond is ours
	// the pond is released
	// third: <nil>
}

// A name is put together, a file opened and read, on a scratch arena: a worker's own scratch. The function has one way in and
// many ways out, and none of them cleans up.
func Example_formatString() {
	b := openTalk()
	defer b.Close()
	ponds, err := os.MkdirTemp("", "ponds")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(ponds)
	if err := os.WriteFile(ponds+"/swamp.txt", []byte("12 frogs"), 0o600); err != nil {
		panic(err)
	}

	arena := b.Scratch(0, 0)
	err = arena.Do("read a pond", func(scratch scope.Scope) error {
		name := scope.Sprintf(scratch, "%s/%s.txt", ponds, "swamp") // lies in scratch
		file, err := os.Open(strings.Clone(name))                   // its errors may outlive the name
		if err != nil {
			return err
		}
		scratch.Own(file) // closed with scratch
		text, err := scope.ReadAt(scratch, file, 0, 8)
		fmt.Printf("%s, from %d open file\n", text, arena.Stats().Owned)
		return err
	})
	fmt.Println(err)
	fmt.Println(arena.Stats().Owned, "open files,", arena.Stats().Used, "bytes")
	// Output:
	// 12 frogs, from 1 open file
	// <nil>
	// 0 open files, 0 bytes
}

// All memory is partitioned once. A new level rewinds the level; new settings rewind the level, and then the systems;
// what was there at the beginning stays until the end.
func Example_initSystemsLevel() {
	b := openTalk()
	load := func(region, what string) {
		_, err := budget.Load(context.Background(), b.Region(region), func(s scope.Scope) (*FrogSystem, error) {
			fmt.Println("  make", what)
			s.Defer(func() { fmt.Println("  drop", what) })
			return nil, nil
		})
		if err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println("start")
	load("init", "log")
	load("systems", "renderer")
	load("level", "pond")
	fmt.Println("new level")
	load("level", "swamp")
	fmt.Println("new settings")
	load("systems", "small renderer")
	load("level", "swamp")
	fmt.Println("end")
	fmt.Println(b.Close())
	// Output:
	// start
	//   make log
	//   make renderer
	//   make pond
	// new level
	//   drop pond
	//   make swamp
	// new settings
	//   drop swamp
	//   drop renderer
	//   make small renderer
	//   make swamp
	// end
	//   drop swamp
	//   drop small renderer
	//   drop log
	// <nil>
}
