package flow

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"

	"github.com/upfront-mem/upfront/arena/blob"
)

// Strip returns the blob of a graph without what only people and tools need: the names of its nodes,
// variables and parameters, and the description of the blob's types. In place of these, and of the
// names of actions and events, it has fingerprints. The graph's own name stays, for errors. scratch
// has blob.ScratchSize bytes. It works on the Go heap.
//
// Load and Size look at a stripped blob as closely as at any other. Its instances have the same data,
// and do the same. Where an error or a trace names a node, or [Graph.Source] a variable, its index
// stands, as "#3". A stripped blob can't be decompiled, drawn or compared by names: keep the source.
//
// Of a stripped blob Strip returns a copy. Bytes that are no graph, or that Compile didn't make, are an
// error.
func Strip(data, scratch []byte) ([]byte, error) {
	if _, _, err := verify(data, scratch); err != nil {
		return nil, err
	}
	if blob.IsBare(data) {
		return bytes.Clone(data), nil
	}
	source, vocabulary, err := Decompile(data, scratch)
	if err != nil {
		return nil, err
	}
	c := compiler{source: &source, vocabulary: vocabulary}
	made, err := c.compile()
	if err != nil || !bytes.Equal(made, data) {
		return nil, fmt.Errorf("flow: graph %.80q isn't as Compile makes it: compile its source anew", source.Name)
	}
	c.strip = true
	return c.blob()
}

// printOf is the fingerprint of a signature, as a stripped graph has it for a name: of its name, and of
// the names and types of its parameters.
func printOf(s Signature) string {
	h := fnv.New64a()
	write := func(text string) {
		_, _ = h.Write(append(binary.LittleEndian.AppendUint32(nil, uint32(len(text))), text...))
	}
	write(s.Name)
	for _, p := range s.Parameters {
		write(p.Name)
		write(p.Type.String())
		write(strconv.FormatBool(p.Out))
	}
	return string(binary.LittleEndian.AppendUint64(nil, h.Sum64()))
}

// printSize is its length.
const printSize = 8

// nameless looks that a stripped graph has no names, and prints in the place of some.
func (v *verifier) nameless() error {
	named := v.Names.Len() != 0
	for _, x := range v.variables {
		named = named || x.Name.Len() != 0
	}
	for _, all := range []blob.Array[signature]{v.Actions, v.Signals} {
		for i, s := range all.Get(v.blob) {
			if s.Name.Len() != printSize {
				return fmt.Errorf("the fingerprint of signature %d has %d bytes, not %d", i, s.Name.Len(), printSize)
			}
			for _, p := range s.Parameters.Get(v.blob) {
				named = named || p.Name.Len() != 0
			}
		}
	}
	if named {
		return errors.New("it is stripped, and has names")
	}
	return nil
}

// stripDiffers says what a stripped graph needs that the host hasn't.
func stripDiffers(what string, there blob.Array[signature], b blob.Blob, here []Signature) error {
	for _, s := range there.Get(b) {
		i := hashed(here, s.Hash)
		if i < 0 {
			return fmt.Errorf("the host has no %s whose name has the hash %08x; the graph is stripped", what, s.Hash)
		}
		if printOf(here[i]) != s.Name.Get(b) || !sameTypes(here[i].Parameters, s.Parameters.Get(b)) {
			return fmt.Errorf("%s %q: the host has %v, the graph another fingerprint; it is stripped: "+
				"compile its source anew", what, here[i].Name, here[i].Parameters)
		}
	}
	return nil
}

// sameTypes reports whether the parameters of a host and of a blob are the same but for their names.
func sameTypes(here []Parameter, there []parameterOf) bool {
	return slices.EqualFunc(here, there, func(p Parameter, q parameterOf) bool {
		return p.Type == q.Type && p.Out == (q.Out != 0)
	})
}

// nodeName is the name of the node with an index, or the index.
func nodeName(r *root, b blob.Blob, i int) string {
	if names := r.Names.Get(b); names != nil {
		return textOf(names[i], b)
	}
	return indexName(i)
}

// variableName is the name of the variable with an index, or the index.
func variableName(r *root, b blob.Blob, i int) string {
	if name := r.Variables.Get(b)[i].Name; name.Len() != 0 {
		return textOf(name, b)
	}
	return indexName(i)
}

// indexName is what stands for a name that was stripped.
func indexName(i int) string { return "#" + strconv.Itoa(i) }
