package save

import (
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Show writes the contents of a file of [Ring.Write] as text: sizes, pools, containers, heaps of
// [State.Heap] and structs. For a file of a checked build it also writes all other allocations,
// with their source lines. The file may be of any program. Show checks the file as [Ring.Read]
// does, as far as that is possible without a ring. Show fails if the file is damaged, if the
// snapshot has more than 1 GiB, or if w fails. On the Go heap, Show takes up to three times the
// file's size and the sizes of all heaps of [State.Heap]. It takes more for the file's description
// of types, which has at most 16 MiB.
func Show(w io.Writer, rd io.Reader) error {
	f, err := readFile(rd)
	if err != nil {
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "snapshot %d of plan %q: %d bytes, fingerprint %#x\n", f.Number, f.Layout.Plan,
		len(f.Image), f.Fingerprint)
	image := f.Image
	for i := range f.Layout.Parts {
		p := &f.Layout.Parts[i]
		p.show(t, image)
		if err := t.Flush(); err != nil { // each region has its own columns
			return err
		}
		_, _, next := p.span(0)
		image = image[next:]
	}
	for _, of := range f.Layout.Types {
		if of.Kind == "struct" {
			var fields []string
			for _, field := range of.Fields {
				fields = append(fields, field.Name+" "+field.Type)
			}
			fmt.Fprintf(t, "type %s\t%d bytes\t%s\n", of.Name, of.Size, strings.Join(fields, ", "))
		}
	}
	return t.Flush()
}

func (p *partLayout) show(w io.Writer, image []byte) {
	fmt.Fprintf(w, "region %q: %d bytes from offset %#x on, root %s\n", p.Region, p.Size, p.Mark,
		p.Root)
	for i := range p.Of {
		fmt.Fprintf(w, "  of %v\n", &p.Of[i])
	}
	for i, q := range p.Pools {
		words := image[poolWords*i:]
		free, retired := binary.LittleEndian.Uint32(words), binary.LittleEndian.Uint32(words[4:])
		live := int64(q.Count) - int64(free) - int64(retired)
		fmt.Fprintf(w, "  offset %#x\tpool of %s\t%d chunks of %d bytes, %d live\n", p.Mark+q.Offset,
			q.Type, q.Count, q.Stride, live)
	}
	for _, k := range p.Kept {
		fmt.Fprintf(w, "  offset %#x\t%s\t%d bytes\n", p.Mark+k.Offset, k.Name, k.Size)
	}
	for _, h := range p.Heaps {
		fmt.Fprintf(w, "  offset %#x\tarena.Heap\t%d bytes, saved without its free bytes\n", p.Mark+h.Offset, h.Size)
	}
	for _, o := range p.Objects {
		if o.Pool {
			continue
		}
		made := ", scope " + o.Scope
		if o.Label != "" {
			made += ", label " + o.Label
		}
		if o.Made != "" {
			made += ", " + o.Made
		}
		fmt.Fprintf(w, "  offset %#x\t%s\t%d bytes%s\n", p.Mark+o.Offset, o.Type, o.Size, made)
	}
}
