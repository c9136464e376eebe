package sqlite_test

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/upfront-mem/upfront/arena/with/sqlite"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

type World struct {
	db     *sql.DB
	memory *sqlite.Memory
}

func loadWorld(s scope.Scope) (*World, error) {
	memory, err := sqlite.Use(s, 2*budget.MiB, 256*budget.KiB) // before the first connection
	if err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite3", ":memory:")
	if err != nil {
		return nil, err
	}
	s.Own(db)             // closed before its memory ends
	db.SetMaxOpenConns(1) // each connection to :memory: is a database of its own
	_, err = db.Exec("CREATE TABLE frogs(name); INSERT INTO frogs VALUES ('ada')")
	return &World{db, memory}, err
}

func Example() {
	b, err := budget.Open(budget.Plan{Name: "pond",
		Regions: []budget.RegionPlan{{Name: "level", Size: 4 * budget.MiB}}})
	if err != nil {
		panic(err)
	}
	defer b.Close()

	level, err := budget.Load(context.Background(), b.Region("level"), loadWorld)
	if err != nil {
		panic(err)
	}
	w := level.Get()
	_, err = w.db.Exec("INSERT INTO frogs SELECT zeroblob(1 << 20) FROM (VALUES (1), (2), (3))")
	fmt.Println("too much:", err)
	err = w.memory.CleanUp(func() error { // with the reserve
		_, err := w.db.Exec("DROP TABLE frogs")
		return err
	})
	fmt.Println("dropped:", err)
	fmt.Println("the end:", b.Region("level").Rewind(context.Background()))
	// Output:
	// too much: out of memory
	// dropped: <nil>
	// the end: <nil>
}
