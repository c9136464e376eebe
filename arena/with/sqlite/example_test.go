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

func Example() {
	b, err := budget.Open(budget.Plan{Name: "pond", Regions: []budget.RegionPlan{{Name: "level", Size: 4 * budget.MiB}}})
	if err != nil {
		panic(err)
	}
	defer b.Close()
	level, err := budget.Load(context.Background(), b.Region("level"), func(s scope.Scope) (*World, error) {
		memory, err := sqlite.Use(s, 2*budget.MiB, 256*budget.KiB)
		if err != nil {
			return nil, err
		}
		db, err := sql.Open("sqlite3", ":memory:")
		if err != nil {
			return nil, err
		}
		s.Own(db)             // closed before its memory ends
		db.SetMaxOpenConns(1) // each connection to :memory: is a database
		_, err = db.Exec("CREATE TABLE frogs(name); INSERT INTO frogs VALUES ('ada')")
		return &World{db, memory}, err
	})
	if err != nil {
		panic(err)
	}
	w := level.Get()
	_, err = w.db.Exec("INSERT INTO frogs VALUES (zeroblob(1 << 20)), (zeroblob(1 << 20)), (zeroblob(1 << 20))")
	fmt.Println("too much:", err)

	var frogs int
	var sound string
	err = w.memory.CleanUp(func() error {
		return w.db.QueryRow("SELECT count(*), (SELECT * FROM pragma_integrity_check) FROM frogs").Scan(&frogs, &sound)
	})
	fmt.Println(frogs, sound, err)
	fmt.Println(b.Region("level").Rewind(context.Background()))
	// Output:
	// too much: out of memory
	// 1 ok <nil>
	// <nil>
}
