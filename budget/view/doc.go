// Package view draws a budget for people, as SVG that needs no font, script or style of a page around it.
//
//	err := view.Plan(file, plan) // a memory map, to scale
//
// A picture follows the reader's light or dark mode, has its text as text, and the same plan gives the same bytes on
// every target, so that a test can hold a committed picture to the plan that it shows. It shows sizes, not use: what
// was used [budget.Report] says.
package view
