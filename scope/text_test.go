package scope_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

func TestTextAdds(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	for want, add := range map[string]func(*scope.Text) *scope.Text{
		"":       func(x *scope.Text) *scope.Text { return x.Add("") },
		"frog 3": func(x *scope.Text) *scope.Text { return x.Add("frog ").AddInt(3) },
		"toad 4": func(x *scope.Text) *scope.Text {
			return x.AddBytes([]byte("toad ")).AddBytes(nil).AddInt(4)
		},
		"-9223372036854775808": func(x *scope.Text) *scope.Text { return x.AddInt(math.MinInt64) },
		"12 00ff":              func(x *scope.Text) *scope.Text { fmt.Fprintf(x, "%d %04x", 12, 255); return x },
	} {
		s := scratch.Open("s")
		text := s.Text()
		assert.Same(t, &text, add(&text))
		assert.Equal(t, want, text.String())
		assert.Equal(t, want, string(text.Bytes()))
		assert.Len(t, want, text.Len())
		assert.EqualValues(t, len(want), scratch.Stats().Used, "it owns what it holds")
		assert.Equal(t, text.Len(), cap(text.Bytes()), "append can't run into what lies behind")
		require.NoError(t, s.Close())
	}
}

// TestTextCopiesBytes: a Text copies the bytes added, even its own.
func TestTextCopiesBytes(t *testing.T) {
	_, s := opened(t, "s")
	text, packet := s.Text(), []byte("frog")
	text.AddBytes(packet)
	copy(packet, "toad")
	text.AddBytes(packet[:1]).AddBytes(text.Bytes()[1:])
	copy(packet, "newt")
	assert.Equal(t, "frogtrogt", text.String())
	s.Bytes(scratchSize - 20)
	was := text.Len()
	assert.Equal(t, was, text.AddBytes(make([]byte, 20)).Len(), "what doesn't fit is left out")
	assert.ErrorIs(t, s.Err(), scope.ErrFull)
	assert.ErrorIs(t, s.Close(), scope.ErrFull)
}

func TestTextThatIsFull(t *testing.T) {
	s := open(t).Scratch(0, 0).Open("s")
	text := s.Text()
	s.Bytes(scratchSize - 10)
	full := `budget "test": scratch 0.0 is full: scope "s" asked for %d bytes, %d of 65536 are free; held by "s" (%d bytes); ` +
		`raise scratch.size in the plan to %d or more`
	text.Add("frogs").Add("eleven bytes").Add("3")
	assert.Equal(t, "frogs3", text.String(), "what doesn't fit is left out as a whole, and what fits after it isn't")
	assert.EqualError(t, s.Err(), fmt.Sprintf(full, 12, 4, scratchSize-4, scratchSize+12))
	text.Add("abcde")
	assert.Equal(t, "frogs3", text.String())
	n, err := text.Write([]byte("12345"))
	assert.Zero(t, n)
	assert.ErrorIs(t, err, scope.ErrFull)
	n, err = text.Write([]byte("1"))
	assert.Equal(t, 1, n)
	assert.NoError(t, err)
	_, err = fmt.Fprintf(&text, "%20d", 1)
	assert.ErrorIs(t, err, scope.ErrFull)
	assert.Equal(t, "frogs31", text.String())
	assert.ErrorIs(t, s.Close(), scope.ErrFull, "nobody asked, so Close tells")
}

func TestTextGrowsAsAppendDoes(t *testing.T) {
	scratch, s := opened(t, "s")
	text := s.Text()
	assert.Zero(t, scratch.Stats().Used, "it owns nothing while it is empty")
	text.Add("12345")
	first := text.Bytes()
	text.Add("67")
	assert.EqualValues(t, 7, scratch.Stats().Used)
	assert.Equal(t, counted(1), scratch.Stats().Objects)
	s.Bytes(1)
	text.Add("8")
	assert.EqualValues(t, 7+1+14, scratch.Stats().Used)
	assert.Equal(t, 8, cap(text.Bytes()), "its spare capacity is nobody else's")
	assert.Equal(t, "12345", string(first), "a view of before stays as long as the scope")
	view := text.String()
	text.Reset()
	assert.Zero(t, text.Len())
	assert.Empty(t, text.String())
	text.Add("abcdefghijklmn")
	assert.EqualValues(t, 7+1+14, scratch.Stats().Used, "its bytes are used again")
	assert.Equal(t, "abcdefgh", view, "a view changes after Reset")
	temp := s.Temp(20480).Text()
	for range 300 {
		temp.Add("0123456789")
	}
	assert.Equal(t, strings.Repeat("0123456789", 300), temp.String(), "temporaries take new pieces")
	require.NoError(t, s.Close())
}

func TestTextInAScopeThatMayNot(t *testing.T) {
	b := open(t)
	scratch := b.Scratch(0, 0)
	s := scratch.Open("s")
	text, spare := s.Text(), s.Text()
	spare.Add("123").Reset()
	inner := s.Open("inner")
	text.Add("frog")
	spare.Add("1")
	_, err := text.Write([]byte("1"))
	assert.EqualError(t, err,
		`scope: BUG: allocation in scope "s" of scratch 0.0 while scope "inner", opened in it, is open; close "inner" first`)
	assert.Zero(t, text.Len()+spare.Len())
	require.NoError(t, inner.Close())
	assert.EqualError(t, s.Close(),
		`scope: BUG: allocation in scope "s" of scratch 0.0 while scope "inner", opened in it, is open; close "inner" first`)

	again := scratch.Open("again")
	mine := again.Text()
	mine.Add("mine")
	stale := "scope: BUG: Add to a Text in a closed scope of scratch 0.0"
	for _, add := range []func(*scope.Text){
		func(x *scope.Text) { x.Add("") },
		func(x *scope.Text) { x.AddInt(1) },
		func(x *scope.Text) { x.AddBytes(nil) },
		func(x *scope.Text) { fmt.Fprint(x, 1) },
	} {
		assert.PanicsWithError(t, stale, func() { add(&spare) })
	}
	assert.ErrorIs(t, recovered(func() { spare.Add("") }), scope.ErrClosed)
	assert.Equal(t, "mine", mine.String())
	assert.NoError(t, again.Err(), "the scope that is there now hears nothing of it")
	assert.Zero(t, spare.Reset().Len())
	require.NoError(t, again.Close())
	assert.Zero(t, mine.Len())
	assert.Empty(t, mine.String())
	assert.Nil(t, mine.Bytes())

	var add func()
	require.NoError(t, inLevel(t, b, func(s scope.Scope) error {
		loaded := s.Text()
		add = func() { loaded.Add("more than it has room for") }
		return nil
	}))
	assert.PanicsWithError(t,
		`scope: BUG: Add to a Text in scope "level" of region level, which is frozen since its load returned`, add)
	last := scratch.Open("last").Text()
	last.Add("last")
	assert.Error(t, b.Close())
	assert.Zero(t, last.Len())
	assert.PanicsWithError(t, "scope: BUG: Add to a Text in a scope whose budget is closed", func() { last.Add("1") })
}

func TestSprintf(t *testing.T) {
	scratch, s := opened(t, "s")
	name := scope.Sprintf(s, "%s %03d", "frog", 7)
	assert.Equal(t, "frog 007", name)
	assert.EqualValues(t, 8, scratch.Stats().Used)
	assert.Empty(t, scope.Sprintf(s, ""))
	assert.True(t, utf8.ValidString(scope.Sprintf(s, "%q", "🐸")))
	assert.EqualError(t, recovered(func() { scope.Sprintf(s, "%70000d", 1) }),
		`budget "test": scratch 0.0 is full: scope "s" `+
			`asked for 70000 bytes, 65522 of 65536 are free; held by "s" (14 bytes); raise scratch.size in the plan to 70016 or more`)
	inner := s.Open("inner")
	assert.ErrorContains(t, recovered(func() { scope.Sprintf(s, "") }), "allocation in scope")
	require.NoError(t, inner.Close())
	_ = s.Close()
}

// TestStringOf: a text in one call, empty or not; a refused one allocates only in the scope.
func TestStringOf(t *testing.T) {
	b := open(t)
	region := b.Region("level")
	_, err := budget.Load(t.Context(), region, func(s scope.Scope) (*point, error) {
		for _, text := range []string{"", "ada", "a\x00b\x00", strings.Repeat("Zoë", 1000)} {
			free := s.Free()
			for _, base := range []arena.Base{region.Base(), b.Base()} {
				assert.Equal(t, text, scope.StringOf(s, base, text).Get(base))
				packet := []byte(text)
				kept := scope.StringOf(s, base, packet)
				clear(packet)
				assert.Equal(t, text, kept.Get(base), "of bytes, which are the caller's again")
			}
			assert.Equal(t, free-4*uint64(len(text)), s.Free())
		}
		assert.Equal(t, arena.String{}, scope.StringOf(s, b.Base(), []byte(nil)))
		assert.Panics(t, func() { scope.StringOf(b.Scratch(0, 0).Open("elsewhere"), region.Base(), "ada") })
		assert.PanicsWithError(t, "scope: BUG: a zero Scope: get one from budget.Load, Budget.Frame, or Open of a "+
			"Scope or a Scratch",
			func() { scope.StringOf(scope.Scope{}, region.Base(), "ada") })
		assert.PanicsWithError(t, "scope: BUG: a zero Scope: get one from budget.Load, Budget.Frame, or Open of a "+
			"Scope or a Scratch",
			func() { scope.StringOf(scope.Scope{}, region.Base(), []byte{}) })
		scope.StringOf(s, region.Base(), strings.Repeat("x", 256<<10))
		return nil, nil
	})
	assert.ErrorIs(t, err, budget.ErrFull)
}
