// Package view draws a budget for people, as SVG that needs no font, script or style of a page around it, and as text.
//
//	view.Plan(file, plan)                     // what is asked for: a memory map, to scale
//	view.Report(file, b.Report())             // what is planned, was used at most, and is used now; and who uses it
//	view.Timeline(file, timeline.Read())      // what each part held over time
//	view.Inside(file, inside)                 // what lies in an arena, as region.Inside found it
//
// Report, Timeline and Inside have a text each, of 80 columns, by the same name with Text behind
// it; of a plan it is its String. Report.String of package budget is for a log: a line for each
// arena that differs, where ReportText sums siblings up. ReportHTML writes the tables of a page;
// package live serves one.
//
// All write at once, or not at all, and what they return is what the writer says, or why there is nothing to draw. They
// draw what they are given, on any goroutine; nothing here asks a budget.
//
// A picture follows the reader's light or dark mode, has its text as text, and the same values give the same bytes on every
// target, so that a test can hold a committed picture to what it shows. It holds what others wrote, as names of labels,
// and nothing of that is markup.
package view
