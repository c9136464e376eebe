package lua_test

import (
	"fmt"
	"log"

	"github.com/upfront-mem/upfront/arena/with/lua"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

func Example() {
	b, err := budget.Open(budget.Plan{Name: "pond",
		Scratch: budget.ScratchPlan{Workers: 1, Size: 512 * budget.KiB}})
	if err != nil {
		log.Fatal(err)
	}
	defer b.Close()
	err = b.Scratch(0, 0).Do("level", func(s scope.Scope) error {
		l, err := lua.New(s, lua.Plan{Name: "frogs", Size: 256 * budget.KiB, Steps: 1_000_000})
		if err != nil {
			return err
		}
		fmt.Println(l.Run("frogs.lua", `
			function jump(x, far) return x + far, "splash" end
			function grow() local t = {} while true do t[#t + 1] = "frog " .. #t end end`))
		fmt.Println(l.Call("jump", 1, 2.5))
		fmt.Println(l.Call("grow"))
		fmt.Println(l.Call("jump", 3, 1)) // the state goes on
		return nil
	}) // the state is closed before its memory ends
	fmt.Println(err, b.Scratch(0, 0).Stats().Used)
	// Output:
	// <nil>
	// [3.5 splash] <nil>
	// [] lua: state "frogs": upfront: full: not enough memory: raise Size in its lua.Plan, which is 262144
	// [4 splash] <nil>
	// <nil> 0
}
