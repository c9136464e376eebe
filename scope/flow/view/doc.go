// Package view draws graphs as SVG, or as DOT for Graphviz, and prints traces of their runs
// ([Trace]).
//
//	err := view.SVG(w, graph)   // graph is a flow.Source
//	err = view.Diff(w, old, new) // two versions in one layout
//
// Events are arrows, actions and sends have a double edge, logic has round corners, and variables
// are dashed. Control links are solid, and links from and to variables are dashed. So a picture can
// be read without its colours. An SVG needs no font, script or style of a page. It follows the
// reader's light or dark mode. The same graph gives the same bytes on every target.
//
// In a picture of two versions, untouched boxes and links are grey. Added ones have the sign "+"
// and are thick. Gone ones have "−" and are dotted. Changed ones have "~", and a changed box has a
// second outline and shows the old and the new text. Texts of more than 36 characters are cut.
package view
