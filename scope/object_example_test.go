package scope_test

import (
	"fmt"

	"github.com/upfront-mem/upfront/scope"
)

// Tone is a sound that plays on a channel of the mixer.
type Tone struct{ Channel int32 }

var busy [8]bool // the mixer's channels

// tones declares Tone once, with its finalizer.
var tones = scope.Object(func(v *Tone) error {
	fmt.Println("free channel", v.Channel)
	busy[v.Channel] = false
	return nil
})

// An object has a finalizer, which runs when its scope closes. An object whose constructor fails
// has none to run.
func ExampleObjectMaker() {
	b, scratch := openExample()
	defer b.Close()
	s := scratch.Open("cutscene")
	for _, channel := range []int32{3, 5, 3} {
		_, err := tones.Make(s, func(v *Tone) error {
			if busy[channel] {
				return fmt.Errorf("channel %d is busy", channel)
			}
			v.Channel, busy[channel] = channel, true
			return nil
		})
		if err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println("close:", s.Close())
	// Output:
	// channel 3 is busy
	// free channel 5
	// free channel 3
	// close: <nil>
}
