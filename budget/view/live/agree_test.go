package live_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"html"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/view"
)

// said has the figures of each part that every reader agrees on.
type said map[string]map[string]uint64

// agreed returns a report, and a table of its figures that no code of the library made.
func agreed(t testing.TB) (r budget.Report, want said) {
	t.Helper()
	data, err := os.ReadFile("../../testdata/agree.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &r))
	data, err = os.ReadFile("../../testdata/agree.txt")
	require.NoError(t, err)
	want = said{}
	for line := range strings.Lines(string(data)) {
		if words := strings.Fields(line); words[0] != "#" {
			require.Len(t, words, 3, line)
			value, err := strconv.ParseUint(words[2], 10, 64)
			require.NoError(t, err)
			want.says(words[0], words[1], value)
		}
	}
	return r, want
}

func (s said) says(part, figure string, value uint64) {
	if s[part] == nil {
		s[part] = map[string]uint64{}
	}
	s[part][figure] = value
}

// row is a line of a table or a picture: bytes together, if there are several arenas; and of one
// arena bytes now, at most, and planned.
type row struct{ together, now, most, planned string }

// rows returns the lines that the text, the picture and the page have for each part.
func (s said) rows(size func(uint64) string) map[string]row {
	rows := map[string]row{}
	for name, part := range s {
		together, planned := "", size(part["arena_size"])
		if n := part["arenas"]; n > 1 {
			together, planned = size(part["used"]), fmt.Sprint(n, "×", planned)
		}
		rows[name] = row{together, size(part["arena_used"]), size(part["arena_peak"]), planned}
		if chunks := part["pool_chunks"]; chunks != 0 {
			rows[name+"/pools"] = row{"", "", fmt.Sprint(part["pool_chunks_peak"]), fmt.Sprint(chunks)}
		}
		if most, labelled := part["label:frogs:peak"]; labelled {
			if together != "" {
				together = size(part["label:frogs:used"])
			}
			rows[name+"/label frogs"] = row{together, size(part["label:frogs:arena_used"]), size(most), ""}
		}
	}
	return rows
}

// TestAgree: all readers of one report show the same figures, with slots, buffers of the frame,
// scratch, labels and pools. Readers in modules of their own (diff, check, Prometheus, pprof) have
// this test there.
func TestAgree(t *testing.T) {
	r, want := agreed(t)
	t.Run("parts", func(t *testing.T) {
		data, err := json.Marshal(r)
		require.NoError(t, err)
		var again budget.Report
		require.NoError(t, json.Unmarshal(data, &again))
		got := said{}
		for _, p := range again.Parts() {
			for _, f := range budget.Figures() {
				got.says(p.Name, f.Name, p.Value(f.Name))
			}
			for _, u := range p.Labels {
				got.says(p.Name, "label:"+u.Name+":used", u.Bytes)
				got.says(p.Name, "label:"+u.Name+":arena_used", u.ArenaBytes)
				got.says(p.Name, "label:"+u.Name+":peak", u.Peak)
			}
		}
		assert.Equal(t, want, got)
	})
	t.Run("string", func(t *testing.T) { assert.Equal(t, want.most(), mostOfString(t, r)) })
	t.Run("text", func(t *testing.T) {
		var out bytes.Buffer
		require.NoError(t, view.ReportText(&out, r))
		assert.Equal(t, want.rows(budget.SizeText), rowsOfText(want, out.String()))
	})
	page := still(t, r)
	for name, draw := range map[string]func() string{
		"picture": func() string {
			var out bytes.Buffer
			require.NoError(t, view.Report(&out, r))
			return out.String()
		},
		"map of the page": func() string { return body(t, ask(page, "GET", "/map.svg")) },
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, want.rows(budget.SizeText), rowsOfPicture(want, draw()))
			title := html.UnescapeString(regexp.MustCompile(`<desc>.*</desc>`).FindString(draw()))
			for part, row := range want.rows(exact) {
				name, label, _ := strings.Cut(part, "/")
				of, text := "", cmp.Or(label, part)+": "+row.now+" bytes now"
				if row.planned != "" {
					of = ", of " + row.planned
				}
				if row.together == "" {
					text += ", " + row.most + " at most" + of
				} else {
					text += " and " + row.most + " at most in one" + of + "; " + row.together + " together"
				}
				switch {
				case label == "pools":
					assert.Contains(t, draw(), "open pools: "+row.planned+" chunks, "+row.most+" in use at most")
				case label != "":
					assert.Contains(t, draw(), "<title>"+text+"</title>", name)
				default:
					assert.Contains(t, draw(), "<title>"+text+"</title>")
					assert.Contains(t, title, text)
				}
			}
		})
	}
	t.Run("page", func(t *testing.T) {
		root, got := parse(t, body(t, ask(page, "GET", "/"))), map[string]row{}
		for name := range want {
			article := root.by("part-" + name)
			for _, line := range article.all("table")[0].all("tbody")[0].all("tr") {
				text := line.all("th")[0].text
				numbers := line.all("td")[1:]
				key := name + "/" + strings.TrimSuffix(text, ", in chunks")
				if text == name {
					key = name
				}
				together, n := "", len(numbers)
				if n == 4 {
					together = numbers[0].text
				}
				got[key] = row{together, numbers[n-3].text, numbers[n-2].text, numbers[n-1].text}
			}
			assert.Equal(t, want[name]["fulls"] != 0,
				strings.Contains(article.text, fmt.Sprintf("full %d time", want[name]["fulls"])))
			assert.Equal(t, want[name]["cache_hits"] != 0,
				strings.Contains(article.text, "caches: 15 of 17 reads found, 4 evicted"))
			assert.Equal(t, want[name]["warnings"] != 0,
				strings.Contains(article.text, fmt.Sprintf("warned %d time", want[name]["warnings"])))
		}
		for name, row := range want.rows(budget.SizeText) {
			assert.Equal(t, row, got[name], name)
		}
	})
	t.Run("suggest", func(t *testing.T) {
		plan, err := budget.Suggest(r)
		require.NoError(t, err)
		sizes := map[string]uint64{"frame": plan.Frame.Size, "scratch": plan.Scratch.Size}
		for _, region := range plan.Regions {
			sizes[region.Name] = region.Size
		}
		for _, q := range plan.Quotas {
			sizes[q.Name] = q.Size
		}
		for name, part := range want {
			size := part["arena_peak"]
			if part["fulls"] != 0 { // the peak is too small
				size = part["arena_size"]
			}
			assert.Equal(t, size, sizes[name], name)
		}
	})
}

// most returns the peaks of the parts and of their labels, as sizes.
func (s said) most() map[string]string {
	most := map[string]string{}
	for name, part := range s {
		most[name] = budget.SizeText(part["arena_peak"])
		if peak, labelled := part["label:frogs:peak"]; labelled {
			most[name+"/frogs"] = budget.SizeText(peak)
		}
	}
	return most
}

// mostOfString returns the peaks in the lines of Report.String, the highest of several arenas.
func mostOfString(t testing.TB, r budget.Report) map[string]string {
	t.Helper()
	line := regexp.MustCompile(`(?m)^  ([a-z]+(?: [\d.]+)?)(?: and \d+ more)?:? (?:label "(\w+)"|\s*\[).*peak +([\d.]+)KiB`)
	highest, most := map[string]float64{}, map[string]string{}
	for _, m := range line.FindAllStringSubmatch(r.String(), -1) {
		name := r.Arena(m[1]).Part
		if m[2] != "" {
			name += "/" + m[2]
		}
		peak, err := strconv.ParseFloat(m[3], 64)
		require.NoError(t, err)
		if old, known := highest[name]; !known || peak > old {
			highest[name], most[name] = peak, m[3]+"KiB"
		}
	}
	return most
}

// rowsOfText returns the lines of a text of 80 columns that the table has.
func rowsOfText(want said, text string) map[string]row {
	rows, part := map[string]row{}, ""
	for _, m := range regexp.MustCompile(`(?m)^  +(.+?) +\[[#+.]*\](.*)$`).FindAllStringSubmatch(text, -1) {
		part = add(rows, want, part, m[1], strings.Fields(m[2]))
	}
	return rows
}

// rowsOfPicture returns the lines of a picture: a name, and the sizes next to it.
func rowsOfPicture(want said, picture string) map[string]row {
	rows, part := map[string]row{}, ""
	lines, order := map[string][]string{}, []string{} // by y
	texts := regexp.MustCompile(`<text class="[a-z ]+" x="[\d.]+" y="([\d.]+)">([^<]*)<`)
	for _, m := range texts.FindAllStringSubmatch(picture, -1) {
		if lines[m[1]] == nil {
			order = append(order, m[1])
		}
		lines[m[1]] = append(lines[m[1]], m[2])
	}
	for _, y := range order {
		part = add(rows, want, part, lines[y][0], lines[y][1:])
	}
	return rows
}

// add adds the line of a part, or the line of a label or of pools below one, and returns the part.
func add(rows map[string]row, want said, part, name string, figures []string) string {
	name = strings.TrimSuffix(name, ", in chunks")
	together, n := "", len(figures)
	if _, is := want[name]; is && n >= 3 {
		if n == 4 {
			together = figures[0]
		}
		rows[name] = row{together, figures[n-3], figures[n-2], figures[n-1]}
		return name
	}
	if strings.HasPrefix(name, "label ") {
		if n == 3 {
			together = figures[0]
		}
		rows[part+"/"+name] = row{together, figures[n-2], figures[n-1], ""}
	} else if name == "pools" {
		rows[part+"/"+name] = row{"", "", figures[0], figures[1]}
	}
	return part
}

// exact returns a number in groups of three digits.
func exact(n uint64) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", exact(n/1000), n%1000)
}
