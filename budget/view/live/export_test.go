package live

// Serve serves to whoever a listener lets in.
var Serve = serve

// Open is how many connections are open.
func (s *Server) Open() int { return int(s.listen.open.Load()) }

// PartyOf is whose a connection is.
var PartyOf = partyOf

// Places is how many streams there are now.
func (f *Feed) Places() int { return len(f.viewers) }

// Bandwidth is what all viewers of a server get, in bytes a second.
const Bandwidth = bandwidth
