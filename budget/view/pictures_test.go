package view_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/inside"
	"github.com/upfront-mem/upfront/budget/view"
)

// golden compares a picture or a text with the file of that name: the same bytes in every build, on
// every target.
func golden(t *testing.T, name, drawn string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(drawn), 0o644))
	}
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, string(text), drawn, "go test ./budget/view -update draws it anew")
}

// drawn returns the output of fn.
func drawn(t testing.TB, fn func(io.Writer) error) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, fn(&b))
	return b.String()
}

// taken returns the bytes of Go heap that fn allocates.
func taken(fn func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	fn()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func readReport(t testing.TB, name string) (r budget.Report) {
	t.Helper()
	data, err := os.ReadFile(name)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &r))
	return r
}

// TestGolden: the committed pictures and texts are current.
func TestGolden(t *testing.T) {
	report := readReport(t, filepath.Join("testdata", "report.json"))
	for name, fn := range map[string]func(io.Writer) error{
		"report.svg": func(w io.Writer) error { return view.Report(w, report) },
		"report.txt": func(w io.Writer) error { return view.ReportText(w, report) },
	} {
		t.Run(name, func(t *testing.T) {
			text := drawn(t, fn)
			golden(t, name, text)
			if strings.HasSuffix(name, ".svg") {
				checkPicture(t, text)
			} else {
				checkText(t, text)
			}
		})
	}
}

var (
	textTag = regexp.MustCompile(`<text(?: class="([\w ]*)")? x="(-?[\d.]+)" y="(-?[\d.]+)">([^<]*)</text>`)
	rectTag = regexp.MustCompile(`<rect class="([\w ]+)" x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)"`)
	headTag = regexp.MustCompile(`^<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 880 ([\d.]+)" width="880" height="([\d.]+)" role="img">\n<title>[^<]+</title>\n<desc>[^<]+</desc>\n`)
)

// checkPicture requires XML that stands alone, with all shapes on its paper and no overlapping
// texts.
func checkPicture(t testing.TB, text string) {
	t.Helper()
	checkXML(t, text)
	head := headTag.FindStringSubmatch(text)
	require.NotNil(t, head, "%.300s", text)
	assert.Equal(t, head[1], head[2])
	height := number(t, head[2])
	for _, no := range []string{"<script", "<a ", "href=", "@import", "NaN", "%!"} {
		assert.False(t, strings.Contains(text, no), no)
	}
	assert.Len(t, rectTag.FindAllString(text, -1), strings.Count(text, "<rect ")-1,
		"each but the paper has a place and a size that is no less than 0")
	for _, m := range rectTag.FindAllStringSubmatch(text, -1) {
		x, y, w, h := number(t, m[2]), number(t, m[3]), number(t, m[4]), number(t, m[5])
		assert.True(t, x >= 20 && x+w <= 860.05 && y >= 0 && y+h <= height, m[0])
	}
	type span struct {
		from, to float64
		text     string
	}
	lines := map[string][]span{}
	assert.Len(t, textTag.FindAllString(text, -1), strings.Count(text, "<text "))
	for _, m := range textTag.FindAllStringSubmatch(text, -1) {
		wide := 7.2
		if strings.Contains(m[1], "small") {
			wide = 6.6
		}
		x := number(t, m[2])
		s := span{x, x + wide*float64(utf8.RuneCountInString(unescaped(m[4]))), m[4]}
		switch {
		case strings.Contains(m[1], "size"):
			s.from, s.to = s.from-(s.to-s.from), s.from
		case strings.Contains(m[1], "middle") || strings.Contains(m[1], "in"):
			s.from, s.to = s.from-(s.to-s.from)/2, s.from+(s.to-s.from)/2
		}
		assert.True(t, s.from >= 0 && s.to <= 880 && number(t, m[3]) < height, m[0])
		for _, other := range lines[m[3]] {
			assert.False(t, s.from < other.to && other.from < s.to, "%q lies on %q", s.text, other.text)
		}
		lines[m[3]] = append(lines[m[3]], s)
	}
}

func checkXML(t testing.TB, text string) {
	t.Helper()
	for decoder := xml.NewDecoder(strings.NewReader(text)); ; {
		_, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
	}
}

// checkText requires lines of at most 80 columns, without control characters.
func checkText(t testing.TB, text string) {
	t.Helper()
	assert.True(t, strings.HasSuffix(text, "\n"))
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		assert.LessOrEqual(t, utf8.RuneCountInString(line), 80, line)
		assert.Equal(t, strings.TrimRight(line, " "), line)
		for _, r := range line {
			assert.True(t, unicode.IsPrint(r), "%q", line)
		}
	}
	assert.NotContains(t, text, "%!")
}

func number(t testing.TB, text string) float64 {
	t.Helper()
	x, err := strconv.ParseFloat(text, 64)
	require.NoError(t, err)
	return x
}

var escapes = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&", "&#34;", `"`, "&#39;", "'")

func unescaped(text string) string { return escapes.Replace(text) }

// colours returns the fill of each class, by mode.
func colours(t *testing.T) map[string]map[string]string {
	text := drawn(t, func(w io.Writer) error { return view.Plan(w, plans["one"]) })
	light, dark, _ := strings.Cut(text[strings.Index(text, "<style>"):strings.Index(text, "</style>")], "@media")
	modes := map[string]map[string]string{"light": {}, "dark": {}}
	for mode, style := range map[string]string{"light": light, "dark": dark} {
		for _, rule := range regexp.MustCompile(`(?m)([\w., ]+?) \{[^}]*fill: (#\w{6})`).FindAllStringSubmatch(style,
			-1) {
			for selector := range strings.SplitSeq(rule[1], ",") {
				modes[mode][strings.TrimSpace(selector)] = rule[2]
			}
		}
	}
	return modes
}

// TestContrast: by the formula of WCAG 2, every text has a contrast of at least 4.5 in both modes.
func TestContrast(t *testing.T) {
	for mode, colour := range colours(t) {
		for _, on := range [][2]string{{"text", ".paper"}, {".small", ".paper"}, {".wrong", ".paper"},
			{".in", ".region"}, {".in", ".frame"}, {".in", ".scratch"}, {".in", ".c0"}, {".in", ".c1"}, {".in", ".c2"},
			{".in", ".c3"}, {".in", ".c4"}, {".in", ".c5"}, {".in", ".c6"}, {".in", ".c7"}, {".in", ".other"},
			{".in", ".bad"}} {
			require.Contains(t, colour, on[0], mode)
			require.Contains(t, colour, on[1], mode)
			assert.GreaterOrEqual(t, contrast(t, colour[on[0]], colour[on[1]]), 4.5, "%s on %s, %s", on[0], on[1], mode)
		}
	}
}

func contrast(t *testing.T, a, b string) float64 {
	luminance := func(text string) (l float64) {
		rgb, err := strconv.ParseUint(text[1:], 16, 32)
		require.NoError(t, err)
		for i, weight := range []float64{0.0722, 0.7152, 0.2126} {
			c := float64(rgb>>(8*i)&255) / 255
			if c <= 0.04045 {
				c /= 12.92
			} else {
				c = math.Pow((c+0.055)/1.055, 2.4)
			}
			l += weight * c
		}
		return l
	}
	return (max(luminance(a), luminance(b)) + .05) / (min(luminance(a), luminance(b)) + .05)
}

// TestMarksDiffer: the marks of a load and a rewind differ by hue in both modes: grey has none.
func TestMarksDiffer(t *testing.T) {
	text := drawn(t, func(w io.Writer) error { return view.Timeline(w, played(3)) })
	signs := map[string]string{} // the sign before a text of the legend
	modes := regexp.MustCompile(`<rect class="(\w+)"[^>]*>\n<text[^>]*>(load|rewind)<`)
	for _, m := range modes.FindAllStringSubmatch(text, -1) {
		signs[m[2]] = m[1]
	}
	for mode, colour := range colours(t) {
		require.Contains(t, colour, "."+signs["load"], mode)
		require.Contains(t, colour, "."+signs["rewind"], mode)
		assert.Less(t, chroma(t, colour["."+signs["load"]]), 32, mode)
		assert.Greater(t, chroma(t, colour["."+signs["rewind"]]), 128, mode)
	}
}

// chroma returns the distance of a colour from grey.
func chroma(t *testing.T, text string) int {
	rgb, err := strconv.ParseUint(text[1:], 16, 32)
	require.NoError(t, err)
	r, g, b := int(rgb>>16), int(rgb>>8&255), int(rgb&255)
	return max(r, g, b) - min(r, g, b)
}

// TestWriterFails: each function returns the writer's error.
func TestWriterFails(t *testing.T) {
	report := budget.Report{Name: "one", Size: 1}
	for _, err := range []error{view.Plan(full{}, plans["one"]), view.PlanDiff(full{}, before, after),
		view.Report(full{}, report), view.ReportText(full{}, report), view.ReportHTML(full{}, report),
		view.Timeline(full{}, played(3)),
		view.Inside(full{}, inside.Contents{})} {
		assert.ErrorIs(t, err, io.ErrShortWrite)
	}
}
