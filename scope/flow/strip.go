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

// Strip returns the blob of a graph without the parts that only people and tools need: the names of
// its nodes, variables and parameters, and the description of the blob's types. Fingerprints
// replace the description, and the names of actions and events. The graph's own name stays, for
// errors. scratch must have blob.ScratchSize bytes. Strip works on the Go heap.
//
// Load and Size check a stripped blob like any other. Instances of the stripped graph have the same
// data, and run in the same way. Errors, traces and [Graph.Source] name a node or variable by its
// index, as "#3". [Decompile] refuses a stripped blob, so keep the source.
//
// Strip returns a copy of a blob that is stripped already. Strip returns an error for bytes that
// aren't a graph, or that differ from those that this version of Compile makes.
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
		return nil, fmt.Errorf("flow: graph %.80q isn't as Compile makes it: compile its source again", source.Name)
	}
	c.strip = true
	return c.blob()
}

// printOf returns the fingerprint of a signature: of its name, and of the names and types of its
// parameters. In a stripped graph it replaces the name.
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

const printSize = 8

// nameless checks that a stripped graph has no names, and that its fingerprints have the right
// length.
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

// stripDiffers is differs for a stripped graph.
func stripDiffers(what string, there blob.Array[signature], b blob.Blob, here []Signature) error {
	for _, s := range there.Get(b) {
		i := hashed(here, s.Hash)
		if i < 0 {
			return fmt.Errorf("the host has no %s whose name has the hash %08x; the graph is stripped", what, s.Hash)
		}
		if printOf(here[i]) != s.Name.Get(b) || !sameTypes(here[i].Parameters, s.Parameters.Get(b)) {
			return fmt.Errorf("%s %q: the host has %v; the graph is stripped and has another fingerprint: "+
				"compile its source again", what, here[i].Name, here[i].Parameters)
		}
	}
	return nil
}

// sameTypes reports whether the parameters of a host and of a blob are the same except for their
// names.
func sameTypes(here []Parameter, there []parameterOf) bool {
	return slices.EqualFunc(here, there, func(p Parameter, q parameterOf) bool {
		return p.Type == q.Type && p.Out == (q.Out != 0)
	})
}

// nodeName returns the name of a node, or its index in a stripped graph.
func nodeName(r *root, b blob.Blob, i int) string {
	if names := r.Names.Get(b); names != nil {
		return textOf(names[i], b)
	}
	return indexName(i)
}

// variableName returns the name of a variable, or its index in a stripped graph.
func variableName(r *root, b blob.Blob, i int) string {
	if name := r.Variables.Get(b)[i].Name; name.Len() != 0 {
		return textOf(name, b)
	}
	return indexName(i)
}

func indexName(i int) string { return "#" + strconv.Itoa(i) }
