package scope_test

import (
	"context"
	"fmt"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// Connection stands for a net.Conn: a Go value, which can't be stored in an arena.
type Connection struct{ To string }

func (c *Connection) Close() error {
	fmt.Println("hang up on", c.To)
	return nil
}

// Player is in an arena. Its name is an offset, its connection a number: both are plain data.
type Player struct {
	Name arena.String
	Conn scope.Owned
}

var playerKind = scope.Plain[Player]()

// An object in an arena has a Go value by its Owned. The match closes the remaining connections
// when it ends.
func ExampleOwned() {
	b, _ := openExample()
	defer b.Close()
	ctx := context.Background()

	type Match struct{ Ada, Bob, Cyd *Player }
	match, err := budget.Load(ctx, b.Region("level"), func(s scope.Scope) (*Match, error) {
		join := func(name string) *Player {
			player := playerKind.New(s)
			player.Conn = s.Own(&Connection{To: name}) // from here on the match owns it
			return player
		}
		return &Match{join("Ada"), join("Bob"), join("Cyd")}, nil
	})
	if err != nil {
		panic(err)
	}
	m := match.Get()
	fmt.Println("talk to", m.Ada.Conn.Value().(*Connection).To)

	fmt.Println("Bob leaves:", m.Bob.Conn.CloseNow())
	fmt.Println("Bob leaves again:", m.Bob.Conn.CloseNow()) // NOT OKAY: it runs once

	// Cyd moves to another server, which closes the connection itself
	conn := m.Cyd.Conn.Value().(*Connection)
	fmt.Println("Cyd moves:", m.Cyd.Conn.Cancel(), conn.To, m.Cyd.Conn.Value())

	fmt.Println("the match ends:", b.Region("level").Rewind(ctx))
	// Output:
	// talk to Ada
	// hang up on Bob
	// Bob leaves: <nil>
	// Bob leaves again: scope: BUG: CloseNow of a value that was closed, run or cancelled before
	// Cyd moves: true Cyd <nil>
	// hang up on Ada
	// the match ends: <nil>
}
