// Package view draws a budget as SVG, and a report as text. A picture needs no font, script or
// style of the page around it.
//
//	view.Plan(file, plan)                // the plan: a memory map, to scale
//	view.PlanDiff(file, old, new)        // two plans: their maps next to each other
//	view.Report(file, b.Report())        // sizes, peaks and current use, by label and scope
//	view.Timeline(file, use.Read())      // each part over time, from timeline.Start
//	view.Inside(file, contents)          // the contents of an arena, from inside.OfRegion
//
// ReportText writes a report as text of at most 80 columns, and [budget.Plan.String] returns a plan
// as text. ReportHTML writes tables for a page, such as the
// page of package live. [budget.Report.String] is for a log. In its text, slots share a line only
// if their metrics are equal, while ReportText has one line for all slots of a region.
//
// In a picture of two plans, each kind of change of a part (added, gone, grown, shrunk, moved) has
// a sign and a stroke. So the picture can be read without its colours.
//
// Each function makes at most one write. It returns the writer's error, or an error with the reason
// why the argument can't be drawn. The functions only read their arguments, so any goroutine may
// call them.
//
// A picture follows the reader's light or dark mode, and its text can be selected. The same
// argument gives the same bytes on every target, so a test can compare a committed picture. Names
// in a picture, such as labels, are escaped.
package view
