package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/upfront-mem/upfront/platform/jsonfile"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/disk"
)

// Standing is the sum of all games of a name.
type Standing struct {
	Name   string    `json:"name"`
	Games  int       `json:"games"`
	Caught uint64    `json:"caught"`
	Deaths uint64    `json:"deaths"`
	Exits  uint64    `json:"exits"`
	Best   uint32    `json:"best"` // the most frogs caught in one game
	Map    string    `json:"map"`  // of the best game
	Last   time.Time `json:"last"`
}

// scoresCommand prints the best standings. It reports damaged scores and prints the others.
func scoresCommand(_ context.Context, args []string, stdout, stderr io.Writer) int {
	f := newFlags("scores", "FILE", stderr)
	asJSON := f.Bool("json", false, "print one JSON array and nothing else")
	most := f.Int("n", 10, "names to print, at most")
	name, code, ok := parseOne(f, args, "FILE")
	if !ok {
		return code
	}
	var last lastScores
	torn, failed := disk.ReadScores(name, last.add)
	if torn != 0 {
		fmt.Fprintf(stderr, "frogpond: %s: the last %d bytes are torn\n", name, torn)
	}
	if failed != nil {
		fmt.Fprintln(stderr, "frogpond:", failed)
		code = 1
	}
	if failed != nil && last.games == nil {
		return code
	}
	table := standings(last.games)
	table = table[:min(len(table), max(0, *most))]
	tell := func(w io.Writer) { tellScores(w, table) }
	if err := printResult(stdout, *asJSON, table, tell); err != nil {
		fmt.Fprintln(stderr, "frogpond:", err)
		return 1
	}
	return code
}

// gamesMost bounds the games that are summed up, and with them the Go heap: about 200 MB.
const gamesMost = 1 << 20

// lastScores keeps the last score of each player in each game. A score with smaller numbers than
// the one before belongs to a new game, as after a restart of a server without saves.
type lastScores struct {
	games []disk.Score
	last  map[scorer]int // index into games
}

// scorer is a player in an epoch of a room.
type scorer struct {
	name                [16]byte
	on                  [8]byte
	room, epoch, player uint32
}

// add adds a score. It fails if there are more than gamesMost games.
func (l *lastScores) add(c *disk.Score) error {
	who := scorer{c.Name, c.Map, c.Room, c.Epoch, c.Player}
	if at, known := l.last[who]; known && c.Ticks >= l.games[at].Ticks &&
		c.Caught >= l.games[at].Caught && c.Deaths >= l.games[at].Deaths && c.Exits >= l.games[at].Exits {
		l.games[at] = *c
		return nil
	}
	if len(l.games) == gamesMost {
		return fmt.Errorf("it has scores of more than %d games; only the first of them are shown",
			gamesMost)
	}
	if l.last == nil {
		l.last = map[scorer]int{}
	}
	l.last[who] = len(l.games)
	l.games = append(l.games, *c)
	return nil
}

// standings sums up games by name, most frogs caught first.
func standings(games []disk.Score) []Standing {
	byName := map[[16]byte]*Standing{}
	for _, c := range games {
		s := byName[c.Name]
		if s == nil {
			s = &Standing{Name: printable(c.Name[:])}
			byName[c.Name] = s
		}
		s.Games++
		s.Caught += uint64(c.Caught)
		s.Deaths += uint64(c.Deaths)
		s.Exits += uint64(c.Exits)
		if c.Caught > s.Best || s.Games == 1 {
			s.Best, s.Map = c.Caught, printable(c.Map[:])
		}
		if at := time.Unix(c.Seconds, 0).UTC(); at.After(s.Last) {
			s.Last = at
		}
	}
	table := []Standing{}
	for _, s := range byName {
		table = append(table, *s)
	}
	slices.SortFunc(table, func(a, b Standing) int {
		return cmp.Or(-cmp.Compare(a.Caught, b.Caught), cmp.Compare(a.Deaths, b.Deaths),
			cmp.Compare(a.Name, b.Name))
	})
	return table
}

func tellScores(w io.Writer, table []Standing) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "NAME\tGAMES\tCAUGHT\tBEST\tON\tDEATHS\tEXITS")
	for _, s := range table {
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%s\t%d\t%d\n", s.Name, s.Games, s.Caught, s.Best, s.Map,
			s.Deaths, s.Exits)
	}
	t.Flush() // can't fail: it writes to memory
}

// printable returns a name from a file in printable form, since the file may hold any bytes.
func printable(name []byte) string {
	name = bytes.TrimRight(name, "\x00")
	if len(name) == 0 {
		return "-"
	}
	return jsonfile.Printable(string(name))
}
