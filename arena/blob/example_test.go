package blob_test

import (
	"fmt"
	"log"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena/blob"
)

// Quest is a step of a story. Its bytes are the same on every target.
type Quest struct {
	Title blob.Str
	Then  blob.Array[blob.Link[Quest]]
	Gold  int32
}

var quests = blob.Of[Quest]() // panics if Quest has an int

// A tool writes a blob, and the game reads it in place.
func Example() {
	w := quests.Writer(arena.NewBlock(1024, 64))
	end := blob.Put(w, Quest{Title: w.Str("go home"), Gold: 100})
	swim := blob.Put(w, Quest{Title: w.Str("swim"), Then: blob.PutAll(w, end)})
	start := blob.Put(w, Quest{Title: w.Str("find the pond"), Then: blob.PutAll(w, swim, end)})
	data, err := w.Finish(start)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(data), "bytes")

	// In the game; the bytes may come from anywhere.
	quest, b, err := quests.Verify(data, make([]byte, blob.ScratchSize(data)))
	if err != nil {
		log.Fatal(err)
	}
	for quest != nil {
		fmt.Println(quest.Title.Get(b), quest.Gold)
		next := quest.Then.Get(b)
		if len(next) == 0 {
			break
		}
		quest = next[0].Get(b)
	}
	// Output:
	// 176 bytes
	// find the pond 0
	// swim 0
	// go home 100
}

// If the block is too small, Size returns the size needed after all nodes were put.
func ExampleWriter_Size() {
	put := func(block []byte) (*blob.Writer[Quest], error) {
		w := quests.Writer(block)
		_, err := w.Finish(blob.Put(w, Quest{Title: w.Str("find the pond")}))
		return w, err
	}
	w, err := put(nil)
	fmt.Println(err)
	_, err = put(arena.NewBlock(w.Size(), 64))
	fmt.Println(err)
	// Output:
	// blob: full: a blob of Quest needs 112 bytes, the block has 0
	// <nil>
}

// Action is the common part of several nodes; its Tag names the type.
type Action struct{ Tag blob.Tag }

func (Action) Variants() []any { return []any{Wait{}, Reward{}} }

type Wait struct {
	Action
	Ticks uint32
}

type Reward struct {
	Action
	Item blob.Str
}

type Script struct {
	Do blob.Array[blob.Link[Action]]
}

var (
	scripts = blob.Of[Script]()
	waits   = blob.VariantOf[Action, Wait]()
	rewards = blob.VariantOf[Action, Reward]()
)

// A link to a union leads to nodes of several types.
func ExampleVariantOf() {
	w := scripts.Writer(arena.NewBlock(1024, 64))
	data, err := w.Finish(blob.Put(w, Script{blob.PutAll(w,
		blob.PutAs(w, waits, Wait{Ticks: 35}),
		blob.PutAs(w, rewards, Reward{Item: w.Str("a key")}),
	)}))
	if err != nil {
		log.Fatal(err)
	}
	script, b, err := scripts.Verify(data, make([]byte, blob.ScratchSize(data)))
	if err != nil {
		log.Fatal(err)
	}
	for _, link := range script.Do.Get(b) {
		action := link.Get(b)
		if wait := waits.Of(action); wait != nil {
			fmt.Println("wait", wait.Ticks)
		} else if reward := rewards.Of(action); reward != nil {
			fmt.Println("reward", reward.Item.Get(b))
		}
	}
	// Output:
	// wait 35
	// reward a key
}

// For a blob of other types the error names the first field that differs.
func ExampleFormat_Verify_otherTypes() {
	w := quests.Writer(arena.NewBlock(1024, 64))
	data, err := w.Finish(blob.Put(w, Quest{Title: w.Str("swim")}))
	if err != nil {
		log.Fatal(err)
	}

	type Quest struct { // in another program
		Title blob.Str
		Gold  int64
	}
	_, _, err = blob.Of[Quest]().Verify(data, nil)
	fmt.Println(err)
	// Output:
	// blob: of other types: here "Gold int64", there "Then []*Quest", in "Quest"
}
