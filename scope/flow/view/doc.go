// Package view draws graphs for people: as SVG that needs no font, script or style of a page around
// it, and as DOT for Graphviz.
//
// Events are arrows, actions have a double edge, logic has round corners, variables are dashed;
// control links are drawn through, and links from and to variables dashed: no colour is needed to
// tell them apart. A picture follows the reader's light or dark mode, has its text as text, and the
// same graph gives the same bytes on every target.
package view
