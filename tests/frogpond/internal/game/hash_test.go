package game

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
)

// TestHashHasAllState changes each field of all that changes in play: each is another hash.
func TestHashHasAllState(t *testing.T) {
	s := openServer(t, doom.Builtin)
	g, err := s.start(t, s.Maps[0], 1)
	require.NoError(t, err)
	w := g.Level.World
	g.Level.Frogs.get()
	m := w.movers.Get()
	if m == nil { // a map without specials
		in := s.Budget.Scratch(0, 0).Open("movers")
		defer in.Close()
		w.movers = moverMaker.Pool(in, 1)
		m = w.movers.Get()
	}
	w.lights = make([]light, 1)
	w.scrolls = make([]scroll, 1)
	for name, v := range map[string]any{"mover": m, "light": &w.lights[0], "sector": &g.Level.Sectors[0],
		"player": g.Level.Players.At(0), "frog": g.Level.Frogs.At(0), "scroll": &w.scrolls[0].Offset} {
		eachWord(reflect.ValueOf(v).Elem(), name, func(v reflect.Value, name string) {
			before := g.Hash()
			kept := reflect.ValueOf(v.Interface())
			switch {
			case v.CanInt():
				v.SetInt(kept.Int() ^ 1)
			case v.CanUint():
				v.SetUint(kept.Uint() ^ 1)
			default:
				v.SetBool(!kept.Bool())
			}
			assert.NotEqual(t, before, g.Hash(), name)
			v.Set(kept)
			require.Equal(t, before, g.Hash())
		})
	}
}

// eachWord is each number and flag of a value, but what the map alone says of a sector.
func eachWord(v reflect.Value, name string, fn func(v reflect.Value, name string)) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			switch f := v.Type().Field(i); f.Name {
			case "Lines", "Min", "Max", "Number":
			default:
				eachWord(v.Field(i), name+"."+f.Name, fn)
			}
		}
	case reflect.Array:
		for i := range v.Len() {
			eachWord(v.Index(i), name, fn)
		}
	default:
		fn(v, name)
	}
}
