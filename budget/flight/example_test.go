package flight_test

import (
	"fmt"
	"os"
	"time"

	"github.com/upfront-mem/upfront/budget/flight"
)

// A server that writes what led to a late tick.
func ExampleStart() {
	dir, err := os.MkdirTemp("", "flight")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	r, err := flight.Start(dir, flight.Options{Name: "pond", Every: time.Minute})
	if err != nil {
		panic(err) // another recorder of the process is at work
	}
	for tick := range 3 {
		if late := tick == 1; late {
			r.Dump("a late tick")
		}
	}
	r.Close()
	fmt.Println(r.Counts().Written)
	// Output: 1
}
