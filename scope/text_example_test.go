package scope_test

import (
	"context"
	"fmt"
	"os"
	"strconv"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

func ExampleReadFile() {
	b, scratch := openExample()
	defer b.Close()

	err := scratch.Do("load", func(s scope.Scope) error {
		name := scope.Sprintf(s, "%s/pond%d.txt", os.TempDir(), os.Getpid())
		s.Defer(func() { _ = os.Remove(name) })
		if err := os.WriteFile(name, []byte("12 frogs"), 0o600); err != nil {
			return err
		}
		text, err := scope.ReadFile(s, name)
		fmt.Printf("%q\n", text)
		return err
	})
	fmt.Println(err)
	// Output:
	// "12 frogs"
	// <nil>
}

func ExampleText() {
	b, scratch := openExample()
	defer b.Close()
	s := scratch.Open("tick")
	defer s.Close()

	text := s.Text()
	text.Add("frog ").AddInt(3).Add(" at ")
	var room [32]byte
	text.Write(strconv.AppendFloat(room[:0], 1.0/3, 'f', 2, 64)) // no Go allocation
	fmt.Println(text.String())
	fmt.Println(text.Len(), scratch.Stats().Used)
	fmt.Fprintf(text.Reset(), "%02x %v", 255, frog{1, 2}) // formatting uses the Go heap
	fmt.Println(text.String())
	// Output:
	// frog 3 at 0.33
	// 14 14
	// ff {1 2}
}

// The text of a packet goes into the answer without a string in between.
func ExampleText_AddBytes() {
	b, scratch := openExample()
	defer b.Close()
	s := scratch.Open("tick")
	defer s.Close()

	packet := []byte("ada:hello")
	answer := s.Text()
	answer.AddBytes(packet[:3]).Add(" says ").AddBytes(packet[4:])
	copy(packet, "zoe:hi   ") // the next packet
	fmt.Println(answer.String(), s.Err())
	// Output:
	// ada says hello <nil>
}

func ExampleSprintf() {
	b, scratch := openExample()
	defer b.Close()

	err := scratch.Do("load", func(s scope.Scope) error {
		name := scope.Sprintf(s, "maps/%s/%02d.map", "pond", 7) // gone with s
		fmt.Println(name, scratch.Stats().Used)
		return nil
	})
	fmt.Println(err, scratch.Stats().Used)
	// Output:
	// maps/pond/07.map 16
	// <nil> 0
}

// A Go string's bytes are on the Go heap. StringOf copies them into the region and returns their
// offset. It accepts bytes too.
func ExampleStringOf() {
	b, _ := openExample()
	defer b.Close()
	region := b.Region("level")

	type Match struct{ Players []Player }
	match, err := budget.Load(context.Background(), region, func(s scope.Scope) (*Match, error) {
		players := playerKind.Slice(s, 3)
		for i, name := range []string{"Ada", "Zoë"} {
			players[i].Name = scope.StringOf(s, region.Base(), name)
		}
		packet := []byte("join Bob")
		players[2].Name = scope.StringOf(s, region.Base(), packet[5:])
		return &Match{players}, nil
	})
	if err != nil {
		panic(err)
	}
	for _, player := range match.Get().Players {
		fmt.Println(player.Name.Get(region.Base()), player.Name.Len(), "bytes")
	}
	// Output:
	// Ada 3 bytes
	// Zoë 4 bytes
	// Bob 3 bytes
}
