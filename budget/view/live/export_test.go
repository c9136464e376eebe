package live

// Serve serves a listener.
var Serve = serve

// Open returns the number of open connections.
func (s *Server) Open() int { return int(s.listen.open.Load()) }

// PartyOf returns the origin of a connection.
var PartyOf = partyOf

// Places returns the number of streams.
func (f *Feed) Places() int { return len(f.viewers) }

// Bandwidth is the bytes a second of all viewers of a server together.
const Bandwidth = bandwidth
