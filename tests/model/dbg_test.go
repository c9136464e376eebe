package model_test

import "testing"

func TestDbg(t *testing.T) {
	dbg = true
	w, _ := newWorld(4, 100)
	w.play()
	for _, p := range w.pads[:4] {
		t.Log(p.name, len(p.near), len(p.far))
		for _, s := range p.near {
			t.Log(s.name, s.real, s.layer, s.layered, s.open, s.real.Err())
		}
		for _, s := range p.far {
			t.Log("far", s.name, s.real, s.open, s.real.Err())
		}
	}
	t.Log(w.failed)
}
