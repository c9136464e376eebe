package lua_test

import (
	"fmt"
	"log"

	"github.com/upfront-mem/upfront/arena/with/lua"
	"github.com/upfront-mem/upfront/budget"
)

func Example() {
	b, err := budget.Open(budget.Plan{Name: "pond",
		Scratch: budget.ScratchPlan{Workers: 1, Size: 512 * budget.KiB}})
	if err != nil {
		log.Fatal(err)
	}
	defer b.Close()
	s := b.Scratch(0, 0).Open("level")
	defer s.Close() // first the script, then its memory
	l, err := lua.New(s, lua.Plan{Name: "frogs", Size: 256 * budget.KiB, Steps: 1_000_000})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(l.Run("frogs.lua", `
		function jump(x, far) return x + far, "splash" end
		function grow() local t = {} while true do t[#t + 1] = "frog " .. #t end end`))
	fmt.Println(l.Call("jump", 1, 2.5))
	fmt.Println(l.Call("grow"))
	fmt.Println(l.Call("jump", 3, 1)) // it goes on
	// Output:
	// <nil>
	// [3.5 splash] <nil>
	// [] lua: state "frogs": upfront: full: not enough memory: raise Size in its lua.Plan, which is 262144
	// [4 splash] <nil>
}
