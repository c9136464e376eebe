package flow

// PortName is the port that the node is led to by, as a [Link] has it: "" is its first.
func (s Step) PortName() string {
	if s.Port == 0 {
		return ""
	}
	return kinds[s.Graph.root.Nodes.Get(s.Graph.blob)[s.Node].Get(s.Graph.blob).Tag].ports[s.Port]
}
