package scope_test

import (
	"math/rand"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/scope"
)

type odd [3]byte

type large struct {
	first byte
	_     [7]byte // as Go puts them in on 64-bit targets
	rest  [5]uint64
}

var (
	odds   = scope.Plain[odd]()
	words  = scope.Plain[uint64]()
	larges = scope.Plain[large]()
	shorts = scope.Plain[uint16]()
)

// asked is what one open scope has been asked for. Its cursor counts from the start of the arena, which is a multiple of
// every alignment.
type asked struct {
	cursor, bytes, objects uint64
}

// paddingModel runs a random program on a pad and adds up, beside it, what it asks for. Of the near end it knows where the
// cursor must be; of temporaries only that their pieces are what else is used.
type paddingModel struct {
	t      *testing.T
	random *rand.Rand
	pad    scope.Pad
	scopes []scope.Scope
	near   []asked
	temp   asked
	tempOf int // scopes that were open when the temporaries began; 0: there are none
	pools  []int
	last   []point // the newest thing in the topmost scope; nil: it is no list
	deep   int     // constructors at work
	met    map[string]int
}

func (m *paddingModel) top() scope.Scope { return m.scopes[len(m.scopes)-1] }

// took notes a request of the topmost scope, and whether it was served, as it had to be.
func (m *paddingModel) took(what string, size, align uint64, served bool, free uint64) {
	n := &m.near[len(m.near)-1]
	padding := -n.cursor & (align - 1)
	require.Equal(m.t, padding+size <= free, served, what)
	if !served {
		m.met["full"]++
		return
	}
	m.met[what]++
	m.last = nil
	*n = asked{n.cursor + padding + size, n.bytes + size, n.objects + 1}
}

func (m *paddingModel) open() {
	m.scopes = append(m.scopes, m.top().Open("s"))
	m.near = append(m.near, asked{cursor: m.near[len(m.near)-1].cursor})
	m.last = nil
}

func (m *paddingModel) close() {
	if err := m.top().Close(); err != nil {
		require.ErrorIs(m.t, err, scope.ErrFull)
	}
	m.closed(len(m.scopes) - 1)
}

// closed forgets the scopes from depth up.
func (m *paddingModel) closed(depth int) {
	if m.tempOf > depth {
		m.temp, m.tempOf = asked{}, 0
	}
	m.scopes, m.near, m.last = m.scopes[:depth], m.near[:depth], nil
	m.pools = slices.DeleteFunc(m.pools, func(of int) bool { return of > depth })
}

func (m *paddingModel) step() {
	s := m.top()
	free := s.Free()
	switch m.random.Intn(19) {
	case 0:
		if len(m.scopes) < 6 {
			m.open()
		}
	case 1:
		if len(m.scopes) > 1 && m.deep == 0 {
			m.close()
		}
	case 2:
		m.took("New", 3, 1, odds.TryNew(s) != nil, free)
	case 3:
		m.took("New", 8, 8, words.TryNew(s) != nil, free)
	case 4:
		m.took("New", 48, 8, larges.TryNew(s) != nil, free)
	case 5:
		m.took("New", 0, 1, empties.TryNew(s) != nil, free)
	case 6, 7:
		size, align := uint64(m.random.Intn(200)), uint64(1)<<m.random.Intn(10)
		m.took("Alloc", size, align, s.TryAlloc(size, align) != nil, free)
	case 8:
		n := uint64(m.random.Intn(40))
		if m.random.Intn(8) == 0 {
			n = padSize
		}
		m.took("Slice", 2*n, 2, shorts.TrySlice(s, int(n)) != nil, free)
	case 9:
		n, align := uint64(m.random.Intn(8)), uint64(1)<<m.random.Intn(12)
		served := recovered(func() { words.SliceAligned(s, int(n), align) }) == nil
		m.took("SliceAligned", 8*n, max(align, 8), served, free)
	case 10: // the object and its node behind it
		m.took("Object", uint64(unsafe.Sizeof(mark{}))+16, 8, marks.TryNew(s) != nil, free)
	case 11:
		m.pool(s, free)
	case 12:
		n := uint64(1 + m.random.Intn(5))
		list := points.TrySlice(s, int(n))
		m.took("list", 8*n, 4, list != nil, free)
		m.last = list
	case 13, 14:
		m.append(s, free)
	case 15, 16:
		m.tempStep(s)
	default:
		m.construct(s, free)
	}
}

// pool takes a node, then the chunks with a byte each in front of them.
func (m *paddingModel) pool(s scope.Scope, free uint64) {
	n := uint64(m.random.Intn(20))
	states := (n + 7) &^ 7
	at := m.near[len(m.near)-1].cursor
	node := -at&7 + 16
	var err error
	if len(m.pools) == 2 { // no header is left: the node is asked for in vain, and stays until its scope closes
		err = recovered(func() { larges.Pool(s, int(n)) })
		require.ErrorIs(m.t, err, scope.ErrFull)
		m.took("node", 16, 8, node <= free, free)
		return
	}
	err = recovered(func() { larges.Pool(s, int(n)) })
	m.took("node", 16, 8, node <= free, free)
	if node <= free {
		m.took("Pool", states+48*n, 8, err == nil, free-node)
	}
	if err == nil {
		m.pools = append(m.pools, len(m.scopes))
	}
}

// append makes the newest thing longer where it is, or another list.
func (m *paddingModel) append(s scope.Scope, free uint64) {
	list := m.last
	xs := make([]point, 1+m.random.Intn(3))
	size := 8 * uint64(len(xs))
	var longer []point
	if list == nil {
		list = []point{{1, 2}} // of the Go heap: it moves
		err := recovered(func() { longer = points.Append(s, list, xs...) })
		m.took("Append", 8*max(2, uint64(1+len(xs))), 4, err == nil, free)
		return
	}
	err := recovered(func() { longer = points.Append(s, list, xs...) })
	require.Equal(m.t, size <= free, err == nil)
	if err != nil {
		return
	}
	require.Equal(m.t, at(list), at(longer))
	n := &m.near[len(m.near)-1] // still one thing
	n.cursor += size
	n.bytes += size
	m.last = longer
	m.met["in place"]++
}

// tempStep asks for a temporary. How large its piece is isn't modelled.
func (m *paddingModel) tempStep(s scope.Scope) {
	temp := s.Temp()
	if m.tempOf == 0 {
		m.tempOf = len(m.scopes)
	}
	if m.random.Intn(2) == 0 {
		n := uint64(m.random.Intn(3000))
		if shorts.TrySlice(temp, int(n)) != nil {
			m.temp = asked{0, m.temp.bytes + 2*n, m.temp.objects + 1}
			m.met["Temp"]++
		}
		return
	}
	if words.TryNew(temp) != nil {
		m.temp = asked{0, m.temp.bytes + 8, m.temp.objects + 1}
		m.met["Temp"]++
	}
}

// construct runs steps in a constructor that may fail: then all of them in this scope are undone, but no temporary that the
// scope, or one below it, already had.
func (m *paddingModel) construct(s scope.Scope, free uint64) {
	if m.deep == 2 {
		return
	}
	before, depth := m.near[len(m.near)-1], len(m.scopes)
	end := m.random.Intn(4)
	entered := false
	m.deep++
	err := recovered(func() {
		_, err := larges.Make(s, func(*large) error {
			entered = true
			m.took("Make", 48, 8, true, free)
			for range m.random.Intn(8) {
				m.step()
			}
			switch {
			case end == 0:
				return errMark
			case end == 1:
				panic(errMark)
			}
			for len(m.scopes) > depth {
				m.close()
			}
			return nil
		})
		if err != nil {
			panic(err)
		}
	})
	m.deep--
	if !entered {
		m.took("Make", 48, 8, false, free)
		return
	}
	if end < 2 {
		require.ErrorIs(m.t, err, errMark)
		m.met["undone"]++
		m.closed(depth)
		m.near[depth-1] = before
		// pools of this scope that it made are closed; those before it made the scope's first bytes
		m.pools = m.pools[:min(len(m.pools), int(m.pad.Stats().Pools))]
		return
	}
	require.NoError(m.t, err)
	m.last = nil
}

func (m *paddingModel) check() {
	stats := m.pad.Stats()
	near := m.near[len(m.near)-1].cursor
	bytes, objects := m.temp.bytes, m.temp.objects
	for _, n := range m.near {
		bytes += n.bytes
		objects += n.objects
	}
	require.GreaterOrEqual(m.t, stats.Used, near)
	if m.tempOf == 0 {
		require.Equal(m.t, near, stats.Used)
	}
	require.Equal(m.t, stats.Used-bytes, stats.Padding)
	require.Equal(m.t, objects, stats.Objects)
}

// TestPaddingModel holds Padding to a plain sum, after every step.
func TestPaddingModel(t *testing.T) {
	met := map[string]int{}
	for seed := range int64(25) {
		m := &paddingModel{t: t, random: rand.New(rand.NewSource(seed)), pad: open(t).Pad(0, 0), met: met}
		m.scopes, m.near = []scope.Scope{m.pad.Open("s")}, []asked{{}}
		if seed%2 == 0 { // not much room, so that it is full now and then
			m.took("Alloc", padSize-4000, 1, m.top().TryAlloc(padSize-4000, 1) != nil, m.top().Free()+padSize-4000)
		}
		m.check()
		for range 300 {
			m.step()
			m.check()
		}
		for len(m.scopes) > 0 {
			m.close()
		}
		require.Zero(t, m.pad.Stats().Padding)
		require.Zero(t, m.pad.Stats().Used)
	}
	for _, what := range []string{"New", "Alloc", "Slice", "SliceAligned", "Object", "node", "Pool", "Append", "in place", "Temp", "Make",
		"undone", "full"} {
		require.Greater(t, met[what], 10, "the model hardly ever met %s", what)
	}
}

// Allocations are counted modulo 2^26; an account's are those that it made, also when a scope's begin again meanwhile, and the
// bytes don't notice.
func TestObjectsBeginAgain(t *testing.T) {
	pad := open(t).Pad(0, 0)
	s := pad.Open("s")
	require.NoError(t, scope.Account(s, "early", func() error {
		words.Slice(s, 1)
		return nil
	}))
	odds.New(s)
	slot, _ := s.C()
	(*arena_c.Linear)(slot).Count += (arena_c.ObjectMax - 3) * arena_c.Object
	require.EqualValues(t, arena_c.ObjectMax-1, pad.Stats().Objects)
	require.NoError(t, scope.Account(s, "late", func() error {
		for range 5 {
			odds.New(s)
		}
		return nil
	}))
	require.EqualValues(t, 4, pad.Stats().Objects)
	require.EqualValues(t, 0, pad.Stats().Padding)
	require.EqualValues(t, 26, pad.Stats().Used)
	var full *scope.FullError
	require.ErrorAs(t, recovered(func() { s.Bytes(padSize) }), &full)
	for _, u := range full.Top {
		want := map[string]uint64{"early": 1, "late": 5, "s": arena_c.ObjectMax - 2}[u.Name]
		require.Equal(t, want, u.Objects, u.Name)
	}
	require.Len(t, full.Top, 3)
	require.ErrorIs(t, s.Close(), scope.ErrFull)
}
