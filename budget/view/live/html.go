package live

import (
	"html"
	"net/url"
	"strconv"
	"strings"
)

// Package html/template would write the page, too, and have the linker keep each method of the program: 11 MB of frogpond,
// of which 4 are resident, for a page that nobody may look at.

// markup is HTML. Constants are, as they stand; what people named is, once text has it.
type markup string

// text is what people named, as HTML may hold it: between tags, and in an attribute.
func text(s string) markup { return markup(html.EscapeString(s)) }

// address is where a link leads: to a page, not into a script.
func address(s string) markup {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "" && u.Scheme != "http" && u.Scheme != "https" {
		return "#"
	}
	return text(u.String())
}

// fill puts into a form, which has names in braces for what changes, by turns a name and what stands there.
func fill(form markup, parts ...markup) markup {
	all, size := make([]string, len(parts)), len(form)
	for i, p := range parts {
		all[i] = string(p)
		size += len(p)
	}
	var out strings.Builder
	out.Grow(size)
	_, _ = strings.NewReplacer(all...).WriteString(&out, string(form)) // a builder takes all
	return markup(out.String())
}

// each is what there is of each of a list.
func each[T any](list []T, one func(T) markup) markup {
	var all strings.Builder
	for _, x := range list {
		all.WriteString(string(one(x)))
	}
	return markup(all.String())
}

// when is what there is only sometimes.
func when(yes bool, m markup) markup {
	if yes {
		return m
	}
	return ""
}

// item is a line of a list.
func item(s string) markup { return "<li>" + text(s) + "</li>\n" }

func decimal(n uint64) markup { return markup(strconv.FormatUint(n, 10)) }

// grouped is a number as people read it: 1,234,567.
func grouped(n uint64) markup {
	m := decimal(n)
	for at := len(m) - 3; at > 0; at -= 3 {
		m = m[:at] + "," + m[at:]
	}
	return m
}

// many is a number of things.
func many[N int | uint64](count N, thing markup) markup {
	if count != 1 {
		thing += "s"
	}
	return grouped(uint64(max(0, count))) + " " + thing
}

// natural is a count; a report that a stranger wrote may have one below 0.
func natural(count int) uint64 { return uint64(max(0, count)) }

// column is one of a table. Without a name it isn't there.
type column struct{ class, name markup }

// table is one that is being written. Without a row it isn't there.
type table struct {
	columns []column
	head    markup
	rows    strings.Builder
	some    bool
}

func newTable(caption markup, columns ...column) *table {
	return &table{columns: columns, head: "<table>\n<caption>" + caption + "</caption>\n<thead><tr>" +
		each(columns, column.title) + "</tr></thead>\n<tbody>\n"}
}

func (c column) title() markup {
	return when(c.name != "", `<th scope="col"`+c.kind()+">"+c.name+"</th>")
}

func (c column) kind() markup { return when(c.class != "", ` class="`+c.class+`"`) }

// row writes a line, which begins with a name.
func (t *table) row(name markup, cells ...markup) {
	t.some = true
	t.line("<tr>"+name, cells)
}

// more tells of so many that have no row of their own.
func (t *table) more(count int, cells ...markup) {
	if count != 0 {
		t.rest(decimal(uint64(count))+" more", cells...)
	}
}

// rest writes a line about what has no name.
func (t *table) rest(what markup, cells ...markup) {
	t.line(`<tr class="more">`+named("", what), cells)
}

func (t *table) line(begin markup, cells []markup) {
	t.rows.WriteString(string(begin))
	for i, c := range t.columns[1:] {
		if c.name != "" {
			t.rows.WriteString(string("<td" + c.kind() + ">" + cells[i] + "</td>"))
		}
	}
	t.rows.WriteString("</tr>\n")
}

func (t *table) end() markup {
	return when(t.some, t.head+markup(t.rows.String())+"</tbody>\n</table>\n")
}

// named is how a row begins.
func named(attributes, name markup) markup {
	return `<th scope="row"` + attributes + ">" + name + "</th>"
}

// arena begins the row of an arena.
func arena(name string) markup { return named(` class="arena"`, text(name)) }

// unseen is the title of a column that only shows bars.
func unseen(title markup) markup { return `<span class="unseen">` + title + "</span>" }
