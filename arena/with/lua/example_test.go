package lua_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/upfront-mem/upfront/arena/with/lua"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

const frogs = `
function jump(x, far) return x + far, "splash" end
function grow() local t = {} while true do t[#t + 1] = "frog " .. #t end end`

func Example() {
	regions := []budget.RegionPlan{{Name: "level", Size: 512 * budget.KiB}}
	b, err := budget.Open(budget.Plan{Name: "pond", Regions: regions})
	if err != nil {
		log.Fatal(err)
	}
	defer b.Close()
	load := func(s scope.Scope) (*lua.State, error) {
		l, err := lua.New(s, lua.Plan{Name: "frogs", Size: 256 * budget.KiB, Steps: 1_000_000})
		if err != nil {
			return nil, err
		}
		return l, l.Run("frogs.lua", frogs)
	}
	level, err := budget.Load(context.Background(), b.Region("level"), load)
	if err != nil {
		log.Fatal(err)
	}
	script := level.Get()
	fmt.Println(script.Call("jump", 1, 2.5))
	_, err = script.Call("grow")
	fmt.Println(errors.Is(err, scope.ErrFull), err)
	fmt.Println(script.Call("jump", 3, 1)) // it goes on
	// Output:
	// [3.5 splash] <nil>
	// true lua: state "frogs": upfront: full: not enough memory: raise Size in its lua.Plan, which is 262144
	// [4 splash] <nil>
}
