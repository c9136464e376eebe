// Package view draws graphs as SVG, or as DOT for Graphviz, and prints traces of their runs
// ([Trace]).
//
//	err := view.SVG(w, graph)   // graph is a flow.Source
//	err = view.Diff(w, old, new) // two versions in one layout
//
// Events are arrows, actions have a double edge, logic has round corners, and variables are dashed.
// Control links are solid, and links from and to variables are dashed. So a picture can be read
// without its colours. A picture needs no font, script or style of a page. It follows the reader's
// light or dark mode, and its text can be selected. The same graph gives the same bytes on every
// target.
//
// In a picture of two versions, untouched shapes are grey. Added shapes have the sign "+" and are
// thick. Gone shapes have "−" and are dotted. Changed shapes have "~" and a second outline. A
// changed box shows the old and the new text.
package view
