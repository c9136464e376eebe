package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/upfront-mem/upfront/platform/jsonfile"
)

type tool struct {
	stdout   io.Writer
	stderr   io.Writer
	json     bool
	colours  bool
	printed  bool
	patience time.Duration // the most time of a URL
	progress *progress
}

func newTool(stdout, stderr io.Writer) *tool {
	return &tool{
		stdout:   stdout,
		stderr:   stderr,
		patience: patience,
		colours:  isTerminal(stdout) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb",
		progress: newProgress(stderr, isTerminal(stderr)),
	}
}

func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// print prints a result, as JSON or as text.
func (t *tool) print(value any, text func(io.Writer) error) error {
	if t.json {
		return t.printJSON(value)
	}
	var b bytes.Buffer
	err := text(&b)
	_, failed := t.out().Write(b.Bytes())
	return errors.Join(err, failed)
}

// out returns the writer of results, after the progress line is removed.
func (t *tool) out() io.Writer {
	t.printed = true
	t.progress.end()
	return t.stdout
}

func (t *tool) printJSON(value any) error {
	e := json.NewEncoder(t.out())
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(value)
}

func (t *tool) warn(lines []string) {
	t.progress.end()
	for _, line := range lines {
		fmt.Fprintln(t.stderr, "warning: "+printable(line))
	}
}

// printable returns a message without characters that steer a terminal.
func printable(text string) string { return jsonfile.Printable(text, '\n', '\t') }

// text is a result without metrics; as JSON it is one string.
type text struct {
	Text  string `json:"text"`
	Error string `json:"error,omitempty"` // of a command that has a result too
}

// columns is the width of all that the tool lays out: help, tables and text.
const columns = 80

// wrap returns a line as lines, broken at spaces, of at most columns letters if its words allow it.
// Those after the first begin with indent.
func wrap(text, indent string) string {
	line := []rune(text)
	if len(line) <= columns {
		return text
	}
	for at := columns; at > len(indent); at-- {
		if line[at] == ' ' {
			rest := strings.TrimLeft(string(line[at:]), " ")
			return strings.TrimRight(string(line[:at]), " ") + "\n" + wrap(indent+rest, indent)
		}
	}
	return text
}

func (t *tool) printText(says string) error {
	return t.print(text{Text: says}, func(w io.Writer) error {
		_, err := io.WriteString(w, strings.TrimSuffix(says, "\n")+"\n")
		return err
	})
}

type written struct {
	File  string `json:"file"`
	Bytes int    `json:"bytes"`
}

func outFlag(c *cobra.Command, out *string, what string) {
	c.Flags().StringVarP(out, "out", "o", "", what)
}

// draw prints a result as text if out is "". Otherwise it writes the file out with the function
// file.
func (t *tool) draw(out, text string, file func(io.Writer) error) error {
	if out == "" {
		return t.printText(text)
	}
	var b bytes.Buffer
	if err := file(&b); err != nil {
		return err
	}
	return t.write(out, b.Bytes())
}

// write writes a result to a file, and reports it with --json; "-" is standard output.
func (t *tool) write(name string, data []byte) error {
	if name == "-" && t.json {
		return errors.New("-o - and --json: only one can have standard output")
	}
	if name == "-" {
		_, err := t.out().Write(data)
		return err
	}
	if err := output(name, data); err != nil {
		return err
	}
	if !t.json {
		return nil
	}
	return t.printJSON(written{name, len(data)})
}

// output writes a file as a whole ([replace]), so that a full disk doesn't cost an older one. A
// device or a pipe is written in place.
func output(name string, data []byte) error {
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return os.WriteFile(name, data, 0o644)
	}
	return replace(name, data)
}

// echoWords returns a sentence, at most 500 bytes of it, with each word made printable by
// jsonfile.Echo.
func echoWords(text string) string {
	const most = 500
	words := strings.Fields(text[:min(len(text), most)])
	for i, word := range words {
		words[i] = jsonfile.Echo(word)
	}
	if len(text) > most {
		words = append(words, "…")
	}
	return strings.Join(words, " ")
}

type colour string

const (
	red   colour = "\x1b[31m"
	green colour = "\x1b[32m"
	faint colour = "\x1b[2m"
)

// paint returns a text in a colour if the output has colours, and the text alone otherwise.
func (t *tool) paint(c colour, text string) string {
	if !t.colours || c == "" || text == "" {
		return text
	}
	return string(c) + text + "\x1b[0m"
}

// cell is a text in a table. Numbers are aligned to the right.
type cell struct {
	text   string
	number bool
	colour colour
}

func left(text string) cell  { return cell{text: text} }
func right(text string) cell { return cell{text: text, number: true} }

func echoed(text string) cell { return left(jsonfile.Echo(text)) }

// table writes rows, each column as wide as its widest cell. If they are wider than columns, the
// columns move together, and then the widest texts are cut. Package tabwriter would count the bytes
// of colours.
func (t *tool) table(w io.Writer, rows [][]cell) error {
	var widths []int
	var texts []bool // columns that may be cut
	for _, row := range rows {
		for i, c := range row {
			if i == len(widths) {
				widths, texts = append(widths, 0), append(texts, true)
			}
			widths[i], texts[i] = max(widths[i], utf8.RuneCountInString(c.text)), texts[i] && !c.number
		}
	}
	gap := fit(widths, texts)
	for _, row := range rows {
		var line strings.Builder
		for i, c := range row {
			c.text = cut(c.text, widths[i])
			space := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c.text))
			if i != 0 {
				line.WriteString(gap)
			}
			if c.number {
				line.WriteString(space + t.paint(c.colour, c.text))
			} else {
				line.WriteString(t.paint(c.colour, c.text) + space)
			}
		}
		if _, err := fmt.Fprintln(w, strings.TrimRight(line.String(), " ")); err != nil {
			return err
		}
	}
	return nil
}

// fit returns the gap between columns, and makes those of texts narrower where they don't fit.
func fit(widths []int, texts []bool) (gap string) {
	const least = 8 // of a text that is cut
	wide := -1
	for _, width := range widths {
		wide += width + 1
	}
	if wide+len(widths)-1 <= columns {
		return "  "
	}
	for ; wide > columns; wide-- {
		widest := -1
		for i, is := range texts {
			if is && widths[i] > least && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		widths[widest]--
	}
	return " "
}
