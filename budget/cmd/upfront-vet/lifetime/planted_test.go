package lifetime

// An edit replaces the piece old of a file with new. If old is empty, new is appended.
type edit struct{ file, old, new string }

// A plant is an error to put into a correct program, and a control: a similar edit without the
// error.
type plant struct {
	name, check  string
	file, old    string // the place: a file, and a piece that occurs once in it
	wrong, right string
	want         string // a part of the report, which is at the line of wrong with //!
	at           string // if not "", the report is at this piece of the file
	also         []edit // for wrong and right
}

// planted has the errors by the folder of their module. The errors of frogpond's server are apart
// from its game's.
var planted = map[string][]plant{
	".": slicesOf("tests/frogpond/internal/", pointers, returns, keepers, temporaries, afters, lefts, keys,
		lists, speeds),
	"./": slicesOf("tests/frogpond/internal/", served),
	"tests/frogpond/mods": {
		{name: "a heap for what has an interface", check: "plain", file: "mod.go",
			old:   "type mod struct {\n",
			wrong: "var spare = arena.HeapOf[mod](nil) //!\n\ntype mod struct {\n",
			right: "var spare = arena.HeapOf[[8]uint32](nil)\n\ntype mod struct {\n",
			want: "arena.HeapOf[mod]: mod.module (api.Module) holds a Go pointer; use scope.Owned, which " +
				"Scope.Keep gives"},
		{name: "a heap on a temporary of the load", check: "escape", file: "mod.go",
			old:   "	if m.heap, err = arena.NewHeap(s.BytesUnzeroed(int(s.Free())-owner, 64), 0); err != nil {\n",
			wrong: "	if m.heap, err = arena.NewHeap(temp.BytesUnzeroed(4096, 64), 0); err != nil { //!\n",
			right: "	if m.heap, err = arena.NewHeap(s.BytesUnzeroed(4096+len(temp.Bytes(8)), 64), 0); err != " +
				"nil {\n",
			want: "temp.BytesUnzeroed(4096, 64) is a temporary of the Temp at line ",
			also: []edit{{"mod.go", "	const owner = 128\n", "	const owner = 128\n" +
				"	temp := s.Temp(8192)\n	defer temp.Close()\n	_ = owner\n"}}},
	},
	"scope/with/wazero": {
		{name: "a request's memory after the request", check: "escape", file: "example_test.go",
			old: "		guests := with.NewGuests(s, r, with.Memory{Most: 1 << 20})\n",
			wrong: "		guests := with.NewGuests(s, r, with.Memory{Most: 1 << 20})\n" +
				"		answer = s.Bytes(16) //!\n",
			right: "		guests := with.NewGuests(s, r, with.Memory{Most: 1 << 20})\n" +
				"		answer = append(answer, s.Bytes(16)...)\n",
			want: "s.Bytes(16) is memory of the scope of the Do at line ",
			also: []edit{{"example_test.go", "	return scratch.Do(\"request\", func(s scope.Scope) error {\n",
				"	var answer []byte\n	defer func() { fmt.Print(string(answer)) }()\n" +
					"	return scratch.Do(\"request\", func(s scope.Scope) error {\n"}}},
		{name: "a request's name as a key", check: "mapkey", file: "example_test.go",
			old: "		had, err := mod.ExportedFunction(\"grow\").Call(ctx, 10)\n",
			wrong: "		asked[scope.Sprintf(s, \"grow %d\", 10)]++ //!\n" +
				"		had, err := mod.ExportedFunction(\"grow\").Call(ctx, 10)\n",
			right: "		asked[fmt.Sprintf(\"grow %d\", len(scope.Sprintf(s, \"%d\", 10)))]++\n" +
				"		had, err := mod.ExportedFunction(\"grow\").Call(ctx, 10)\n",
			want: `scope.Sprintf(s, "grow %d", 10) is memory of the scope of the Do`,
			also: []edit{{"example_test.go", "", "\nvar asked = map[string]int{}\n"}}},
	},
}

var pointers = []plant{
	{name: "a string in a command", check: "plain", file: "game/players.go",
		old:   "	Catch  int32",
		wrong: "	Says   struct{ Text string }\n	Catch  int32",
		right: "	Says   struct{ Text [16]byte }\n	Catch  int32",
		at:    "game/game.go:	playerCommandMaker = ",
		want: "scope.Plain[playerCommand]: playerCommand.Says.Text (string) holds a Go pointer; use " +
			"arena.String, or arena.Inline for a short text"},
	{name: "a pointer in a row of a table", check: "plain", file: "doom/wad.go",
		old:   "	Name         arena.Inline[[8]byte]",
		wrong: "	Before       *Entry\n	Name         arena.Inline[[8]byte]",
		right: "	Before       arena.Ptr[Entry]\n	Name         arena.Inline[[8]byte]",
		at:    "doom/wad.go:var entries = ",
		want: "scope.Plain[Entry]: Entry.Before (*doom.Entry) holds a Go pointer; use arena.Ptr, scope.Ref, or " +
			"scope.Addr"},
	{name: "a slice in an object", check: "plain", file: "game/kernel.go",
		old:   "	name   [256]byte",
		wrong: "	lines  [][]byte\n	name   [256]byte",
		right: "	lines  [4]uint64\n	name   [256]byte",
		at:    "game/log.go:	logMaker  = ",
		want:  "scope.Object[logFile]: logFile.lines ([][]byte) holds a Go pointer; use arena.Slice"},
}

var returns = []plant{
	{name: "a way in the scope of its search", check: "escape", file: "game/way.go",
		old:   "	way := pointMaker.TrySlice(result, maxSquares)\n",
		wrong: "	way := pointMaker.TrySlice(scratch, maxSquares)\n",
		right: "	way := pointMaker.TrySlice(result, 2*maxSquares)[:maxSquares]\n",
		at:    "game/way.go:	return s.backFrom(best, way)",
		want:  "pointMaker.TrySlice(scratch, maxSquares) is memory of the scope opened at line "},
	{name: "players in the scope of their search", check: "escape", file: "game/frogs.go",
		old:   "	return list[:n]\n",
		wrong: "	found := pointMaker.Append(scratch, nil, list[:n]...)\n	return found //!\n",
		right: "	found := pointMaker.Append(scratch, nil, list[:n]...)\n	return list[:len(found)]\n",
		want:  "pointMaker.Append(scratch, nil, list[:n]...) is memory of the scope opened at line "},
	{name: "what is seen, in a field, by a method", check: "escape", file: "game/seen.go",
		old:   "	if v.hits == nil || v.seen == nil {\n",
		wrong: "	v.list = sightMaker.TrySlice(scratch, 4)[:0]\n	if v.hits == nil || v.seen == nil {\n",
		right: "	v.list = append([]Seen(nil), sightMaker.TrySlice(scratch, 4)[:0]...)\n" +
			"	if v.hits == nil || v.seen == nil {\n",
		at:   "game/seen.go:		s.turns[player]++\n	}\n	return v.all()",
		want: "sightMaker.TrySlice(scratch, 4) is memory of the scope opened at line ",
		also: []edit{{"game/seen.go", "", "\nvar sightMaker = scope.Plain[Seen]()\n"}}},
	{name: "hits, by a helper", check: "escape", file: "game/trace.go",
		wrong: `
func (w *worker) hitsOn(l *Level, t scope.Scope, from, to doom.Point) []hit {
	query := t.Open("walkable")
	defer w.close(query)
	hits, _ := l.trace(query, from, to)
	return hits //!
}
`,
		right: `
func (w *worker) hitsOn(l *Level, t scope.Scope, from, to doom.Point) []hit {
	query := t.Open("walkable")
	defer w.close(query)
	seen, _ := l.trace(query, from, to)
	hits, _ := l.trace(t, from, to)
	return hits[:len(seen)]
}
`,
		want: "l.trace(query, from, to) is memory of the scope opened at line "},
	{name: "entries, by a function of another package", check: "escape", file: "game/server.go",
		wrong: `
func (s *Server) peek(scratch scope.Scratch, file io.ReaderAt, size int64) (doom.WAD, error) {
	in := scratch.Open("peek")
	defer in.Close()
	return doom.ReadWAD(in, "peek", file, size) //!
}
`,
		right: `
func (s *Server) peek(scratch scope.Scratch, file io.ReaderAt, size int64) (int, error) {
	in := scratch.Open("peek")
	defer in.Close()
	w, err := doom.ReadWAD(in, "peek", file, size)
	return len(w.Entries), err
}
`,
		want: `doom.ReadWAD(in, "peek", file, size) is memory of the scope opened at line`,
		also: []edit{{"game/server.go", "import (\n", "import (\n	\"io\"\n"}}},
	{name: "a closure over hits", check: "escape", file: "game/trace.go",
		wrong: `
func (w *worker) finder(t scope.Scope) func(int) hit {
	query := t.Open("walkable")
	defer w.close(query)
	list := hitMaker.Slice(query, maxHits)
	return func(i int) hit { return list[i] } //!
}
`,
		right: `
func (w *worker) finder(t scope.Scope) func(int) hit {
	query := t.Open("walkable")
	defer w.close(query)
	list := *(*[maxHits]hit)(hitMaker.Slice(query, maxHits))
	return func(i int) hit { return list[i] }
}
`,
		want: "hitMaker.Slice(query, maxHits) is memory of the scope opened at line "},
	{name: "a text for a caller", check: "escape", file: "game/log.go",
		wrong: `
func (w *worker) title(t scope.Scope, name string) string {
	line := t.Open("line")
	defer w.close(line)
	text := line.Text()
	text.Add("level ").Add(name)
	return strings.TrimSpace(text.String()) //!
}
`,
		right: `
func (w *worker) title(t scope.Scope, name string) string {
	line := t.Open("line")
	defer w.close(line)
	text := line.Text()
	text.Add("level ").Add(name)
	return strings.Clone(strings.TrimSpace(text.String()))
}
`,
		want: "text.String() is memory of the scope opened at line ",
		also: []edit{{"game/log.go", "	\"strconv\"\n", "	\"strconv\"\n	\"strings\"\n"}}},
	{name: "a frog of a pool, by a method value", check: "escape", file: "game/frogs.go",
		wrong: `
func (w *worker) anyOf(t scope.Scope) *Frog {
	s := t.Open("pool")
	defer w.close(s)
	get := frogMaker.Pool(s, 4).Get
	return get() //!
}
`,
		right: `
func (w *worker) anyOf(t scope.Scope) Frog {
	s := t.Open("pool")
	defer w.close(s)
	get := frogMaker.Pool(s, 4).Get
	return *get()
}
`,
		want: "get() is memory of the scope opened at line "},
	{name: "a frog of a pool", check: "escape", file: "game/frogs.go",
		wrong: `
func (w *worker) firstOf(t scope.Scope) (first *Frog) {
	s := t.Open("pool")
	defer w.close(s)
	pool := frogMaker.Pool(s, 4)
	for _, f := range pool.All() {
		first = f
	}
	return first //!
}
`,
		right: `
func (w *worker) firstOf(t scope.Scope) (first Frog) {
	s := t.Open("pool")
	defer w.close(s)
	pool := frogMaker.Pool(s, 4)
	for _, f := range pool.All() {
		first = *f
	}
	return first
}
`,
		want: "pool.All() is memory of the scope opened at line "},
}

var keepers = []plant{
	{name: "a way in a field", check: "escape", file: "game/way.go",
		old:   "	b.WayCount = uint32(copy(b.Way[:], way))\n",
		wrong: "	b.WayCount = uint32(copy(b.Way[:], way))\n	g.lastWay = pointMaker.Clone(result, way) //!\n",
		right: "	b.WayCount = uint32(copy(b.Way[:], way))\n	g.lastWay = b.Way[:b.WayCount]\n",
		want:  "pointMaker.Clone(result, way) is memory of the scope opened at line ",
		also:  []edit{{"game/game.go", "type Game struct {\n", "type Game struct {\n	lastWay []doom.Point\n"}}},
	{name: "hits in a global", check: "escape", file: "game/trace.go",
		old:   "	return ok && l.opens(hits, viewer, target)\n",
		wrong: "	lastHits = hits //!\n	return ok && l.opens(hits, viewer, target)\n",
		right: "	lastHits = append(lastHits[:0], hits...)\n	return ok && l.opens(hits, viewer, target)\n",
		want:  "it is kept in the global lastHits",
		also:  []edit{{"game/trace.go", "", "\nvar lastHits []hit\n"}}},
	{name: "players to a channel", check: "escape", file: "game/frogs.go",
		old:   "	f.Sightings += uint32(len(players))\n",
		wrong: "	f.Sightings += uint32(len(players))\n	w.seen <- pointMaker.Clone(seen, players) //!\n",
		right: "	f.Sightings += uint32(len(players))\n	w.seen <- append([]doom.Point(nil), players...)\n",
		want:  "it is sent to a channel; send a copy",
		also: []edit{{"game/crew.go", "type worker struct {\n", "type worker struct {\n" +
			"	seen chan []doom.Point\n"}, doomInCrew}},
	{name: "a list to a goroutine", check: "escape", file: "game/bots.go",
		old: "	l := g.Level\n	column, row := p.At.X>>gridBits, p.At.Y>>gridBits\n",
		wrong: "	l := g.Level\n	near := pointMaker.TrySlice(scratch, 8)\n" +
			"	go func() { b.Target = near[0] }() //!\n	column, row := p.At.X>>gridBits, p.At.Y>>gridBits\n",
		right: "	l := g.Level\n	near := pointMaker.TrySlice(scratch, 8)\n	done := make(chan bool)\n" +
			"	go func() { b.Target = near[0]; close(done) }()\n	<-done\n" +
			"	column, row := p.At.X>>gridBits, p.At.Y>>gridBits\n",
		want: "a goroutine that this function doesn't wait for uses it"},
	{name: "what a Do made, in a variable", check: "escape", file: "game/chart.go",
		old: "		list, seen := hitMaker.Slice(scratch, maxHits), seenMaker.Slice(scratch, l.seenWords())\n",
		wrong: "		list, seen := hitMaker.Slice(scratch, maxHits), seenMaker.Slice(scratch, " +
			"l.seenWords())\n		last = list //!\n",
		right: "		list, seen := hitMaker.Slice(scratch, maxHits), seenMaker.Slice(scratch, " +
			"l.seenWords())\n		last = append(last, list...)\n",
		want: "which closes when that returns; it is kept in the captured variable last",
		also: []edit{{"game/chart.go", "	return scratch.Do(\"chart\", func(scratch scope.Scope) error {\n",
			"	var last []hit\n	defer func() { b.Rows += len(last) }()\n" +
				"	return scratch.Do(\"chart\", func(scratch scope.Scope) error {\n"}}},
	{name: "what a method that Do calls made", check: "escape", file: "game/crew.go",
		wrong: `
func (w *worker) rehearse() error { return w.scratches[0].Do("rehearse", w.sketch) }

func (w *worker) sketch(s scope.Scope) error {
	w.drawn = hitMaker.Slice(s, 4) //!
	return nil
}
`,
		right: `
func (w *worker) rehearse() error { return w.scratches[0].Do("rehearse", w.sketch) }

func (w *worker) sketch(s scope.Scope) error {
	w.drawn = hitMaker.Slice(s, 4)
	defer func() { w.drawn = nil }()
	return nil
}
`,
		want: "which closes when that returns; it is kept in values reached through w",
		also: []edit{{"game/crew.go", "	wake      chan struct{}\n", "	wake      chan struct{}\n" +
			"	drawn []hit\n"}}},
	{name: "a name of a frog in the level, of scratch", check: "escape", file: "game/frogs.go",
		wrong: `
func (w *worker) name(l *Level, t scope.Scope, f *Frog) {
	line := t.Open("name")
	defer w.close(line)
	f.Name = scope.StringOf(line, l.Base, "ada") //!
}
`,
		right: `
func (w *worker) name(l *Level, t scope.Scope, f *Frog) {
	line := t.Open("name")
	defer w.close(line)
	f.Name = scope.StringOf(t, l.Base, scope.Sprintf(line, "ada"))
}
`,
		want: `scope.StringOf(line, l.Base, "ada") is memory of the scope opened at line`,
		also: []edit{{"game/frogs.go", "type Frog struct {\n", "type Frog struct {\n	Name arena.String\n"},
			{"game/frogs.go", "import (\n", "import (\n	\"github.com/upfront-mem/upfront/arena\"\n"}}},
	{name: "a frog in a global", check: "escape", file: "game/frogsystem.go",
		wrong: `
var chosen *Frog

func (w *worker) choose(t scope.Scope) {
	s := t.Open("choose")
	defer w.close(s)
	f := frogMaker.New(s)
	chosen = f //!
}
`,
		right: `
var chosen scope.Ref[Frog]

func (w *worker) choose(t scope.Scope) {
	s := t.Open("choose")
	defer w.close(s)
	f := frogMaker.New(s)
	chosen = scope.RefTo(s, f)
}
`,
		want: "it is kept in the global chosen; make it in a scope that lives as long, or keep a copy"},
	{name: "a frog for a caller", check: "escape", file: "game/frogsystem.go",
		wrong: `
func (w *worker) born(t scope.Scope) (*Frog, error) {
	s := t.Open("born")
	defer w.close(s)
	pool := frogMaker.HandlePool(s, 4)
	f, _ := pool.Get()
	return f, nil //!
}
`,
		right: `
func (w *worker) born(t scope.Scope) (arena.Handle[Frog], scope.HandlePool[Frog], error) {
	s := t.Open("born")
	defer w.close(s)
	pool := frogMaker.HandlePool(s, 4)
	f, h := pool.Get()
	text := s.Text()
	return h, pool, fmt.Errorf("frog %d: %s", f.At.X, text.Add("is gone").String())
}
`,
		want: "pool.Get() is memory of the scope opened at line",
		also: []edit{{"game/frogsystem.go", "import (\n", "import (\n" +
			"	\"fmt\"\n"}, {"game/frogsystem.go", "", "\nvar _ = fmt.Errorf\n"}}},
	{name: "an Addr of what ends before", check: "escape", file: "game/frogsystem.go",
		wrong: `
func (l *Level) point(t scope.Scope, to *log) {
	s := t.Open("point")
	defer s.Close()
	to.file = scope.AddrOf(s, logMaker.New(s)) //!
}
`,
		right: `
func (l *Level) point(t scope.Scope, to *log) {
	s := t.Open("point")
	defer s.Close()
	to.file = scope.AddrOf(t, logMaker.New(t))
}
`,
		want: "logMaker.New(s) is memory of the scope opened at line"},
	{name: "what a method fills, for a caller", check: "escape", file: "game/seen.go",
		wrong: `
func (v *look) prepare(s scope.Scope) { v.hits = hitMaker.Slice(s, maxHits) }

func (w *worker) looking(t scope.Scope) *look {
	s := t.Open("looking")
	defer w.close(s)
	v := &look{}
	v.prepare(s)
	return v //!
}
`,
		right: `
func (v *look) prepare(s scope.Scope) { v.hits = hitMaker.Slice(s, maxHits) }

func (w *worker) looking(t scope.Scope) *look {
	s := t.Open("looking")
	defer w.close(s)
	v, u := &look{}, &look{}
	v.prepare(t)
	u.prepare(s)
	return v
}
`,
		want: "v.prepare(s) is memory of the scope opened at line"},
	{name: "what may be sent", check: "escape", file: "game/seen.go",
		wrong: `
func (w *worker) offer(t scope.Scope, to chan<- []hit) {
	s := t.Open("offer")
	defer w.close(s)
	select { //!
	case to <- hitMaker.TrySlice(s, 4):
	default:
	}
}
`,
		right: `
func (w *worker) offer(t scope.Scope, to chan<- hit) {
	s := t.Open("offer")
	defer w.close(s)
	select {
	case to <- hitMaker.TrySlice(s, 4)[0]:
	default:
	}
}
`,
		want: "it is sent to a channel; send a copy"},
	{name: "a list that a function keeps", check: "escape", file: "game/seen.go",
		wrong: `
func (w *worker) remember(list []hit) { w.kept = list }

func (w *worker) glance(l *Level, t scope.Scope) {
	query := t.Open("glance")
	defer w.close(query)
	w.remember(hitMaker.TrySlice(query, 4)) //!
}
`,
		right: `
func (w *worker) remember(list []hit) { w.kept = append(w.kept[:0], list...) }

func (w *worker) glance(l *Level, t scope.Scope) {
	query := t.Open("glance")
	defer w.close(query)
	w.remember(hitMaker.TrySlice(query, 4))
}
`,
		want: "remember keeps it in values reached through w",
		also: []edit{{"game/crew.go", "	think     func(scope.Scope) error", "	kept []hit\n" +
			"	think     func(scope.Scope) error"}}},
}

// doomInCrew lets crew.go speak of points.
var doomInCrew = edit{"game/crew.go", "	\"github.com/upfront-mem/upfront/scope\"\n)",
	"	\"github.com/upfront-mem/upfront/scope\"\n" +
		"	\"github.com/upfront-mem/upfront/tests/frogpond/internal/doom\"\n)"}

var temporaries = []plant{
	{name: "lines of sectors in a temporary", check: "escape", file: "doom/level.go",
		old:   "		o.Lines = arena.SliceOf(l.Base, words[:counts[i]])\n",
		wrong: "		o.Lines = arena.SliceOf(l.Base, spare[:counts[i]]) //!\n",
		right: "		o.Lines = arena.SliceOf(l.Base, words[:counts[i]+uint32(len(spare))])\n",
		want:  "wordMaker.Slice(temp, 0) is a temporary of the Temp at line",
		also: []edit{{"doom/level.go", "	words := wordMaker.Slice(s, total)\n", "	words := " +
			"wordMaker.Slice(s, total)\n	spare := wordMaker.Slice(temp, 0)\n"}}},
	{name: "the chart in a temporary", check: "escape", file: "doom/blocks.go",
		old:   "	b.Ways = wordMaker.Slice(s, len(b.Cells))\n",
		wrong: "	b.Ways = wordMaker.Slice(temp, len(b.Cells)) //!\n",
		right: "	b.Ways = wordMaker.Slice(s, len(wordMaker.Slice(temp, len(b.Cells))))\n",
		want:  "wordMaker.Slice(temp, len(b.Cells)) is a temporary of the Temp at line "},
	{name: "a header beyond its read", check: "escape", file: "doom/wad.go",
		wrong: `
func headerOf(s scope.Scope, file io.ReaderAt) (w struct{ header []byte }, err error) {
	temp := s.Temp(headerSize)
	defer temp.Close()
	w.header, err = scope.ReadAt(temp, file, 0, headerSize)
	return w, err //!
}
`,
		right: `
func headerOf(s scope.Scope, file io.ReaderAt) (w struct{ header []byte }, err error) {
	temp := s.Temp(headerSize)
	defer temp.Close()
	header, err := scope.ReadAt(temp, file, 0, headerSize)
	w.header = append(w.header, header...)
	return w, err
}
`,
		want: "scope.ReadAt(temp, file, 0, headerSize) is a temporary of the Temp at line"},
	{name: "a load that gives its temporary", check: "escape", file: "game/server.go",
		wrong: `
func (s *Server) loadEnds(ctx context.Context, region budget.Region) (*[4]uint32, error) {
	ends, err := budget.Load(ctx, region, func(in scope.Scope) (*[4]uint32, error) {
		temp := in.Temp(64)
		return (*[4]uint32)(countMaker.Slice(temp, 4)), nil //!
	})
	return ends.Get(), err
}
`,
		right: `
func (s *Server) loadEnds(ctx context.Context, region budget.Region) (*[4]uint32, error) {
	ends, err := budget.Load(ctx, region, func(in scope.Scope) (*[4]uint32, error) {
		temp := in.Temp(64)
		return (*[4]uint32)(countMaker.Clone(in, countMaker.Slice(temp, 4))), nil
	})
	return ends.Get(), err
}
`,
		want: "which ends with its scope; it is returned"},
}

var afters = []plant{
	{name: "a way that is copied too late", check: "afterclose", file: "game/way.go",
		wrong: `
func (g *Game) aWay(w *worker, p *Player, b *brain) {
	result := w.scratches[0].Open("way")
	way := pointMaker.Clone(result, b.Way[:])
	w.close(result)
	copy(b.Way[:], way) //!
}
`,
		right: `
func (g *Game) aWay(w *worker, p *Player, b *brain) {
	result := w.scratches[0].Open("way")
	way := pointMaker.Clone(result, b.Way[:])
	copy(b.Way[:], way)
	w.close(result)
	way = nil
}
`,
		want: "pointMaker.Clone(result, b.Way[:]) is memory of the scope opened at line"},
	{name: "hits after the query", check: "afterclose", file: "game/trace.go",
		old: "	defer w.close(query)\n	hits, ok := l.trace(query, from, to)\n" +
			"	return ok && l.allPassable(hits, who)\n",
		wrong: "	hits, ok := l.trace(query, from, to)\n	w.close(query)\n" +
			"	return ok && l.allPassable(hits, who) //!\n",
		right: "	hits, ok := l.trace(query, from, to)\n	passable := ok && l.allPassable(hits, who)\n" +
			"	w.close(query)\n	return passable && len(hits) >= 0\n",
		want: "l.trace(query, from, to) is memory of the scope opened at line "},
	{name: "a field after both branches closed", check: "afterclose", file: "game/frogs.go",
		wrong: `
func (w *worker) rest(t scope.Scope, long bool) uint8 {
	s := t.Open("rest")
	f := frogMaker.New(s)
	if long {
		f.Rest = 9
		w.close(s)
	} else {
		w.close(s)
	}
	return f.Rest //!
}
`,
		right: `
func (w *worker) rest(t scope.Scope, long bool) uint8 {
	s := t.Open("rest")
	f := frogMaker.New(s)
	if long {
		f.Rest = 9
		w.close(s)
		f = new(Frog)
	} else {
		defer w.close(s)
	}
	return f.Rest
}
`,
		want: "frogMaker.New(s) is memory of the scope opened at line"},
	{name: "a field that may be of another scope", check: "afterclose", file: "game/frogs.go",
		wrong: `
func (w *worker) doze(t scope.Scope, long bool) uint8 {
	s := t.Open("doze")
	f := frogMaker.New(s)
	if long {
		f = frogMaker.New(s)
	}
	w.close(s)
	return f.Rest //!
}
`,
		right: `
func (w *worker) doze(t scope.Scope, long bool) uint8 {
	s := t.Open("doze")
	f := frogMaker.New(s)
	if long {
		f = frogMaker.New(t)
	}
	w.close(s)
	return f.Rest
}
`,
		want: "frogMaker.New(s) is memory of the scope opened at line"},
	{name: "a header after its temporary", check: "afterclose", file: "doom/wad.go",
		wrong: `
func magicOf(s scope.Scope, file io.ReaderAt) (string, error) {
	temp := s.Temp(headerSize)
	header, err := scope.ReadAt(temp, file, 0, headerSize)
	if err := temp.Close(); err != nil {
		return "", err
	}
	return string(header[:4]), err //!
}
`,
		right: `
func magicOf(s scope.Scope, file io.ReaderAt) (string, error) {
	temp := s.Temp(headerSize)
	header, err := scope.ReadAt(temp, file, 0, headerSize)
	magic := string(header[:4])
	if err := temp.Close(); err != nil {
		return "", err
	}
	return magic, err
}
`,
		want: "scope.ReadAt(temp, file, 0, headerSize) is a temporary of the Temp at line"},
}

var lefts = []plant{
	{name: "a return between", check: "unclosed", file: "game/trace.go",
		wrong: `
func (w *worker) crosses(l *Level, t scope.Scope, from, to doom.Point) bool {
	query := t.Open("crosses") //!
	hits, ok := l.trace(query, from, to)
	if !ok {
		return false
	}
	n := len(hits)
	w.close(query)
	return n > 0
}
`,
		right: `
func (w *worker) crosses(l *Level, t scope.Scope, from, to doom.Point) bool {
	query := t.Open("crosses")
	hits, ok := l.trace(query, from, to)
	if !ok {
		w.close(query)
		return false
	}
	n := len(hits)
	w.close(query)
	return n > 0
}
`,
		want: `the scope that t.Open("crosses") opens is still open when the function returns at line`},
	{name: "a defer that is missing", check: "unclosed", file: "game/players.go",
		old:   "	scratch := w.scratches[1].Open(\"spawn\")\n	defer w.close(scratch)\n",
		wrong: "	scratch := w.scratches[1].Open(\"spawn\") //!\n",
		right: "	scratch := w.scratches[1].Open(\"spawn\")\n	defer func() { w.close(scratch) }()\n",
		want:  `the scope that w.scratches[1].Open("spawn") opens is never closed; defer its Close`},
	{name: "a scope of a helper", check: "unclosed", file: "game/players.go",
		wrong: `
func (w *worker) begin(name string) scope.Scope { return w.scratches[1].Open(name) }

func (w *worker) reaches(l *Level, from, to doom.Point) bool {
	s := w.begin("reaches") //!
	if hits, ok := l.trace(s, from, to); ok {
		n := len(hits)
		w.close(s)
		return n == 0
	}
	return false
}
`,
		right: `
func (w *worker) begin(name string) scope.Scope { return w.scratches[1].Open(name) }

func (w *worker) reaches(l *Level, from, to doom.Point) bool {
	s := w.begin("reaches")
	defer w.close(s)
	if hits, ok := l.trace(s, from, to); ok {
		n := len(hits)
		return n == 0
	}
	return false
}
`,
		want: `the scope that w.begin("reaches") opens is still open when the function returns at line`,
		also: []edit{{"game/players.go", "import \"github.com", "import (\n" +
			"	\"github.com/upfront-mem/upfront/scope\"\n)\nimport \"github.com"}}},
	{name: "a continue between", check: "unclosed", file: "game/bots.go",
		wrong: `
func (w *worker) count(l *Level, points []doom.Point) (n int) {
	for _, at := range points {
		s := w.scratches[1].Open("count") //!
		hits, ok := l.trace(s, at, points[0])
		if !ok {
			continue
		}
		n += len(hits)
		w.close(s)
	}
	return n
}
`,
		right: `
func (w *worker) count(l *Level, points []doom.Point) (n int) {
	for _, at := range points {
		s := w.scratches[1].Open("count")
		if hits, ok := l.trace(s, at, points[0]); ok {
			n += len(hits)
		}
		w.close(s)
	}
	return n
}
`,
		want: `the scope that w.scratches[1].Open("count") opens is still open when the function returns at line`},
	{name: "a defer that comes too late", check: "unclosed", file: "game/chart.go",
		wrong: `
func (l *Level) probe(scratch scope.Scratch) error {
	s := scratch.Open("probe") //!
	list := hitMaker.TrySlice(s, maxHits)
	if list == nil {
		return s.Err()
	}
	defer s.Close()
	return nil
}
`,
		right: `
func (l *Level) probe(scratch scope.Scratch) error {
	s := scratch.Open("probe")
	list := hitMaker.TrySlice(s, maxHits)
	if list == nil {
		return s.Close()
	}
	defer s.Close()
	return nil
}
`,
		want: `the scope that scratch.Open("probe") opens is still open when the function returns at line`},
}

var keys = []plant{
	{name: "a formatted name in a global map", check: "mapkey", file: "game/systems.go",
		old: "	sys.Durations = countMaker.Slice(s, ticks)\n",
		wrong: "	sys.Durations = countMaker.Slice(s, ticks)\n" +
			"	built[scope.Sprintf(s, \"systems %s\", logName)] = ticks //!\n",
		right: "	sys.Durations = countMaker.Slice(s, ticks)\n" +
			"	ticks += built[scope.Sprintf(s, \"systems %s\", logName)]\n",
		want: "it becomes a key of a map that may outlive it; use strings.Clone",
		also: []edit{{"game/systems.go", "", "\nvar built = map[string]int{}\n"}}},
	{name: "a text in a map of the game", check: "mapkey", file: "game/game.go",
		old: "	frame := g.budget.Frame()\n",
		wrong: "	frame := g.budget.Frame()\n	line := g.crew.workers[0].scratches[0].Open(\"line\")\n" +
			"	defer g.crew.workers[0].close(line)\n	text := line.Text()\n" +
			"	g.said[text.Add(\"tick\").String()]++ //!\n",
		right: "	frame := g.budget.Frame()\n	line := g.crew.workers[0].scratches[0].Open(\"line\")\n" +
			"	defer g.crew.workers[0].close(line)\n	text := line.Text()\n" +
			"	g.said[string(text.Add(\"tick\").Bytes())]++\n",
		want: "is memory of the scope opened at line",
		also: []edit{{"game/game.go", "type Game struct {\n", "type Game struct {\n	said map[string]int\n"}}},
	{name: "a struct with a name as a key", check: "mapkey", file: "doom/wad.go",
		wrong: `
type place struct{ file, lump string }

func (w *WAD) places(s scope.Scope, all map[place]int) {
	for i := range w.Entries {
		lump := scope.Sprintf(s, "%s", w.Entries[i].name())
		all[place{w.Name, lump}] = i //!
	}
}
`,
		right: `
type place struct{ file, lump string }

func (w *WAD) places(s scope.Scope, all map[place]int) {
	for i := range w.Entries {
		lump := scope.Sprintf(s, "%s", w.Entries[i].name())
		all[place{w.Name, w.Entries[i].name()}] = len(lump)
	}
}
`,
		want: "use strings.Clone, an arena.Inline, or a container.StringMap"},
}

var lists = []plant{
	{name: "append to a slice", check: "append", file: "game/frogs.go",
		old:   "			list[n] = p.At\n			n++\n",
		wrong: "			list = append(list, p.At) //!\n			n++\n",
		right: "			list = append(list[:n], p.At)\n			n++\n",
		want: "append goes to the Go heap: the result of pointMaker.TrySlice(…) has no spare capacity; " +
			"use SliceCap with room for all, or Append of the Maker"},
	{name: "append beyond a constant room", check: "append", file: "doom/level.go",
		wrong: `
func corners(s scope.Scope, o *Outline) []Vertex {
	list := vertexMaker.SliceCap(s, 0, 3)
	list = append(list, o.Min, Vertex{o.Min.X, o.Max.Y})
	return append(list, o.Max, Vertex{o.Max.X, o.Min.Y}) //!
}
`,
		right: `
func corners(s scope.Scope, o *Outline) []Vertex {
	list := vertexMaker.SliceCap(s, 0, 4)
	list = append(list, o.Min, Vertex{o.Min.X, o.Max.Y})
	return append(list, o.Max, Vertex{o.Max.X, o.Min.Y})
}
`,
		want: "append goes to the Go heap: vertexMaker.SliceCap(s, 0, 3) has room for 3, and this makes 4"},
	{name: "append to what a Builder gave", check: "append", file: "doom/maps.go",
		wrong: `
func (w *WAD) starts(s scope.Scope) []Point {
	build := pointMaker.Build(s)
	for range w.Entries {
		build.Push(Point{})
	}
	return append(build.Done(), Point{}) //!
}
`,
		right: `
func (w *WAD) starts(s scope.Scope) []Point {
	build := pointMaker.Build(s)
	for range w.Entries {
		build.Push(Point{})
	}
	return pointMaker.Append(s, build.Done(), Point{})
}
`,
		want: "the result of build.Done() has no spare capacity"},
}

var speeds = []plant{
	{name: "a speed with drag", check: "fused", file: "game/seen.go",
		wrong: `
func (l *Level) drag(at, v float64) (float64, float64) {
	for range 350 {
		v *= 0.98 //!
		at += v
	}
	return at, v
}
`,
		right: `
func (l *Level) drag(at, v float64) (float64, float64) {
	for range 350 {
		v = float64(v * 0.98)
		at += v
	}
	return at, v
}
`,
		want: "v *= 0.98 isn't rounded before the addition at line "},
	{name: "the sine of a heading", check: "fused", file: "game/way.go",
		wrong: `
func (l *Level) north(heading uint8) float64 {
	return math.Sin(float64(heading)) //!
}
`,
		right: `
func (l *Level) north(heading uint8) float64 {
	return math.Sqrt(float64(heading))
}
`,
		want: "math.Sin has other last bits on some targets",
		also: []edit{{"game/way.go", "import (\n", "import (\n	\"math\"\n"}}},
}

var served = []plant{
	{name: "a time in a seat", check: "plain", file: "serve/session.go",
		old:   "	heard    int64",
		wrong: "	came     [2]time.Time\n	heard    int64",
		right: "	came     [2]time.Duration\n	heard    int64",
		at:    "serve/session.go:	outlivesMaker = ",
		want:  "scope.Plain[outlives]: outlives.seats[0].came[0] (time.Time) holds a Go pointer; use int64 of UnixNano",
		also:  []edit{{"serve/session.go", "import (\n", "import (\n	\"time\"\n"}}},
	{name: "append to a full SliceCap", check: "append", file: "serve/keeper.go",
		wrong: `
func (k *keeper) pack(in scope.Scope, n int, images []image) []byte {
	text := byteMaker.SliceCap(in, n, n)
	for i := range images {
		text = append(text, images[i].bytes...) //!
	}
	return text
}
`,
		right: `
func (k *keeper) pack(in scope.Scope, n int, images []image) []byte {
	text := byteMaker.SliceCap(in, 0, n)
	for i := range images {
		text = append(text, images[i].bytes...)
	}
	return text
}
`,
		want: "the result of byteMaker.SliceCap(in, n, n) has no spare capacity"},
}
