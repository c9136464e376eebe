// Package view draws a budget for people, as text and as SVG that needs no font, script or style
// of the page around it.
//
//	view.Plan(file, plan)                // the plan: a memory map, to scale
//	view.PlanDiff(file, old, new)        // two plans: their maps next to each other
//	view.Report(file, b.Report())        // planned, used at most and used now, by label and scope
//	view.Timeline(file, timeline.Read()) // each part over time
//	view.Inside(file, inside)            // the contents of an arena, from region.Inside
//
// ReportText, TimelineText and InsideText write the same as text of 80 columns;
// [budget.Plan.String] returns a plan as text. Report.String of package budget is for a log: slots
// share a line only if their metrics are equal. ReportText has a line for all of them. ReportHTML
// writes tables for a page; package live serves one.
//
// A picture of two plans doesn't depend on colours: parts that were added, are gone, have grown,
// have shrunk or have moved also have a sign and a stroke each.
//
// Each function makes at most one write. It returns the writer's error, or an error that says why
// it can't draw its argument. It works on any goroutine, since it only reads its argument.
//
// A picture follows the reader's light or dark mode, and its text is text. The same argument gives
// the same bytes on every target, so a test can compare a committed picture. Names in it, such as
// labels, are escaped.
package view
