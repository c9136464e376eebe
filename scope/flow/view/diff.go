package view

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/upfront-mem/upfront/scope/flow"
)

// Diff draws two versions of a graph in the layout of both together. Nodes and variables match by
// name, inputs and outputs by node and name, and links by node, list, target and port. A box or
// wire is added if only b has it, and gone if only a has it. Otherwise it is changed or untouched.
// The box of a changed node or variable shows each changed text as "from → to", and inputs and
// outputs of only one version with "+" or "−". To find changed links, Diff takes the links of a
// list that are in both versions. A link with another place among these links is changed.
func Diff(w io.Writer, a, b flow.Source) error {
	_, err := w.Write(diffOf(a, b).svg())
	return err
}

// mark is the state of a box or wire in the second of two versions.
type mark int

const (
	same mark = iota
	added
	gone
	changed
)

// marks are classes of the style, and the words of the legend.
var marks = [...]string{"untouched", "added", "gone", "changed"}

// signs are "+", "−" and "~" as paths around 0.
var signs = [...]string{added: "M-4 0h8M0 -4v8", gone: "M-4 0h8", changed: "M-4 1q2 -4 4 -1t4 -1"}

// badge draws the sign of a mark.
func (m mark) badge(b *bytes.Buffer, x, y int, scale string) {
	if m != same {
		fmt.Fprintf(b, `<g transform="translate(%d %d)%s"><circle class="badge" r="8"/><path class="sign" d="%s"/></g>`+
			"\n", x, y, scale, signs[m])
	}
}

// group draws with the style of a mark.
func (p *picture) group(b *bytes.Buffer, m mark, draw func()) {
	if !p.marked {
		draw()
		return
	}
	fmt.Fprintf(b, "<g class=%q>\n", marks[m])
	draw()
	b.WriteString("</g>\n")
}

// counts describes the marks of two versions, for readers without sight.
func (p *picture) counts() string {
	if !p.marked {
		return ""
	}
	var boxes, wires [len(marks)]int
	for _, b := range p.boxes {
		boxes[b.mark]++
	}
	for _, w := range p.wires {
		wires[w.mark]++
	}
	var text []string
	for m, word := range marks {
		text = append(text, fmt.Sprintf("%s: %d, %d", word, boxes[m], wires[m]))
	}
	return " Boxes and wires " + strings.Join(text, "; ") + "."
}

// markStyle follows style. Untouched shapes are grey. Added ones are thick, gone ones dotted, and
// changed ones have a second outline.
const markStyle = `<style>
  .untouched { color: #b7bfc8 } .added { color: #1a7f37 } .gone { color: #cf222e } .changed { color: #9a6700 }
  g .shape, g .wire, .around { stroke: currentColor } g .label { fill: currentColor }
  g .tip, .badge { fill: currentColor; stroke: currentColor } .around, g .open, .sign { fill: none }
  .untouched .shape { fill: none } .untouched text { fill: #59636e } .sign { stroke: #ffffff; stroke-width: 2 }
  .added .shape { fill: #dafbe1 } .gone .shape { fill: #ffebe9 } .changed .shape { fill: #fff8c5 }
  .added .shape, .added .wire { stroke-width: 3 } .added .inner { stroke-width: 1 } .changed .wire { stroke-width: 2 }
  .gone .shape, .gone .wire { stroke-width: 1.8; stroke-dasharray: 1 3.2; stroke-linecap: round }
  @media (prefers-color-scheme: dark) {
    .untouched { color: #4a525b } .added { color: #56d364 } .gone { color: #ff7b72 } .changed { color: #d29922 }
    .untouched text { fill: #9198a1 } .sign { stroke: #0d1117 }
    .added .shape { fill: #04260f } .gone .shape { fill: #3c1618 } .changed .shape { fill: #2e2204 }
  }
</style>
`

// both is an element of two versions, nil in a version without it.
type both[T any] struct{ a, b *T }

func (e both[T]) mark() mark {
	switch {
	case e.a == nil && e.b != nil:
		return added
	case e.a != nil && e.b == nil:
		return gone
	}
	return same
}

// last returns b, or a if there is no b.
func (e both[T]) last() *T {
	if e.b != nil {
		return e.b
	}
	return e.a
}

// match pairs the elements of two versions by key; elements with the same key, in their order. The
// result is in b's order, and a gone element follows the one before it in a. For example, x y z and
// w y make x w y z: x and z are gone, and w is added.
func match[T any, K comparable](a, b []T, key func(T) K) (list []both[T]) {
	type nth struct {
		key K
		n   int
	}
	keys := func(of []T) []nth {
		list, count := make([]nth, len(of)), map[K]int{}
		for i, e := range of {
			k := key(e)
			list[i] = nth{k, count[k]}
			count[k]++
		}
		return list
	}
	ofB := keys(b)
	inB, inA := map[nth]bool{}, map[nth]int{}
	for _, k := range ofB {
		inB[k] = true
	}
	ofA := keys(a)
	for i, k := range ofA {
		inA[k] = i
	}
	addGone := func(from int) {
		for i := from; i < len(a) && !inB[ofA[i]]; i++ {
			list = append(list, both[T]{a: &a[i]})
		}
	}
	addGone(0)
	for j, k := range ofB {
		if i, ok := inA[k]; ok {
			list = append(list, both[T]{&a[i], &b[j]})
			addGone(i + 1)
		} else {
			list = append(list, both[T]{b: &b[j]})
		}
	}
	return list
}

// linesOf returns the lines of a node's box below its name: its type, its constants, and each input
// and output that differs.
func linesOf(n both[flow.Node]) (list []string, m mark) {
	if m = n.mark(); m != same {
		only := n.last()
		list, _ = linesOf(both[flow.Node]{only, only})
		return list, m
	}
	from, to := whatText(*n.a), whatText(*n.b)
	if n.a.Type != n.b.Type && from == to { // the name of an action may be a type's
		from, to = n.a.Type+" "+from, n.b.Type+" "+to
	}
	list, m = change("", from, to)
	var constants, differences []string
	for _, v := range match(valuesOf(n.a), valuesOf(n.b), func(v value) [2]any { return [2]any{v.name, v.out} }) {
		switch {
		case v.mark() == added:
			differences = append(differences, "+ "+v.b.name+" "+v.b.text)
		case v.mark() == gone:
			differences = append(differences, "− "+v.a.name+" "+v.a.text)
		case *v.a != *v.b:
			text, _ := change(v.a.name+" ", v.a.text, v.b.text)
			differences = append(differences, text...)
		case !v.b.variable:
			constants = append(constants, v.b.name+" "+v.b.text)
		}
	}
	for some := range slices.Chunk(constants, 2) {
		list = append(list, strings.Join(some, ", "))
	}
	if differences != nil {
		m = changed
	}
	return append(list, differences...), m
}

// change returns "name from → to", as two lines if it's too long for one. Words at the begin of
// both aren't repeated. If from is equal, it returns "name to".
func change(name, from, to string) ([]string, mark) {
	if from == to {
		return []string{name + to}, same
	}
	shared := 0
	for shared < min(len(from), len(to)) && from[shared] == to[shared] {
		shared++
	}
	to = to[strings.LastIndex(to[:shared], " ")+1:]
	if line := name + from + " → " + to; len([]rune(line)) <= textMax {
		return []string{line}, changed
	}
	return []string{name + from, "→ " + to}, changed
}

// value is an input or output of a node. Its text is the name of a variable, or a constant.
type value struct {
	name, text    string
	out, variable bool
}

func valuesOf(n *flow.Node) (list []value) {
	if n == nil {
		return nil
	}
	for _, in := range n.In {
		if in.Variable != "" {
			list = append(list, value{in.Name, in.Variable, false, true})
		} else if in.Constant != nil {
			list = append(list, value{in.Name, fmt.Sprint(in.Constant), false, false})
		}
	}
	for _, out := range n.Out {
		if out.Variable != "" {
			list = append(list, value{out.Name, out.Variable, true, true})
		}
	}
	return list
}

// link is a link with its index in its list, and its place among those that both versions have.
type link struct {
	list, to, port string
	text           string // its label
	index, place   int
	common         bool
}

func linksOf(n *flow.Node) (links []link) {
	if n == nil {
		return nil
	}
	for _, list := range n.List {
		for k, l := range list.Links {
			links = append(links, link{list: list.Name, to: l.Node, port: l.Port, text: linkText(list, k), index: k})
		}
	}
	return links
}

// matchLinks pairs the links of a node, and counts their places.
func matchLinks(n both[flow.Node]) []both[link] {
	ofA, ofB := linksOf(n.a), linksOf(n.b)
	list := match(ofA, ofB, func(l link) [3]string { return [3]string{l.list, l.to, l.port} })
	for _, l := range list {
		if l.a != nil && l.b != nil {
			l.a.common, l.b.common = true, true
		}
	}
	for _, links := range [][]link{ofA, ofB} {
		count := map[string]int{}
		for i := range links {
			if l := &links[i]; l.common {
				l.place = count[l.list]
				count[l.list]++
			}
		}
	}
	return list
}

// labelOf returns a link's label, with its number in a if its place differs.
func labelOf(l both[link]) (string, mark) {
	if m := l.mark(); m != same || l.a.place == l.b.place {
		return l.last().text, m
	}
	return fmt.Sprintf("%s, was %d", l.b.text, l.a.index+1), changed
}
