// Package view draws graphs as SVG, or as DOT for Graphviz, and prints traces of their runs
// ([Trace]).
//
//	err := view.SVG(w, graph)   // graph is a flow.Source
//	err = view.Diff(w, old, new) // two versions in one layout
//
// Events are arrows, actions have a double edge, logic has round corners, and variables are dashed.
// Control links are solid, links from and to variables dashed, so the picture doesn't depend on
// colours. It needs no font, script or style from a page, follows the reader's light or dark mode,
// and keeps text as text. The same graph has the same bytes on every target.
//
// In a picture of two versions, untouched shapes are grey. Each other one has a sign: added ones
// have "+" and are thick, gone ones have "−" and are dotted, and changed ones have "~" and a second
// outline. A changed box shows its old and new text.
package view
