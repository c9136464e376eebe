package bots

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/upfront-mem/upfront/tests/frogpond/internal/client"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/wire"
)

type attacker struct {
	kind   string
	number int
	random *rand.Rand
	client *client.Client // of an attacker that joins honestly
	write  func(packet []byte)
	packet []byte // the last one made
	kept   [keptMost][]byte
	keeps  int // so far
	tick   time.Duration

	nonce       wire.Nonce // of the last cookie
	cookie      wire.Cookie
	asked, came time.Duration // when the Hello was sent, and when the cookie came; 0: never
	honest      map[wire.Nonce]time.Duration
	joined      bool

	now    time.Duration
	result Result
	gotIn  uint64
}

const (
	keptMost  = 256
	burstTime = 5 * time.Millisecond
	burstMost = 512 // packets
	// A cookie is good for at least 8 seconds, and at most 16.
	cookieSure = 7500 * time.Millisecond
	cookieDead = 17500 * time.Millisecond
)

// attacks has the method of each kind of attacker. It returns the next packet, or nil if none is
// due.
var attacks = map[string]func(*attacker) []byte{
	"flood":   (*attacker).flood,
	"forge":   (*attacker).forge,
	"replay":  (*attacker).replay,
	"garbage": (*attacker).garbage,
	"slow":    (*attacker).slow,
}

// Kinds returns the kinds of attacks.
func Kinds() []string { return []string{"flood", "forge", "replay", "garbage", "slow"} }

// newAttacker returns the i-th attacker. The attackers have the kinds of o.Hostile in turn.
func newAttacker(o *Options, i int, write func(packet []byte)) *attacker {
	n := len(o.Hostile)
	return &attacker{kind: o.Hostile[i%n], number: i / n, write: write,
		client: client.New(o.client(i)),
		random: rand.New(rand.NewPCG(o.Seed, uint64(i)<<2|3)), honest: map[wire.Nonce]time.Duration{}}
}

func attack(ctx context.Context, o *Options, s *socket, i int, start time.Time) Result {
	a := newAttacker(o, i, s.send)
	for begun := time.Since(start); ctx.Err() == nil; {
		if s.wait(burstTime, a.read) != nil {
			break
		}
		a.now = time.Since(start)
		owed := int(float64(o.Rate)*(a.now-begun).Seconds()) - int(a.result.PacketsOut)
		a.burst(min(owed, burstMost))
	}
	return a.end()
}

// burst sends at most n packets.
func (a *attacker) burst(n int) {
	for range n {
		p := attacks[a.kind](a)
		if p == nil {
			return
		}
		a.result.PacketsOut++
		a.result.BytesOut += uint64(len(p))
		a.write(p)
	}
}

// read handles a packet. A session counts as gotIn if the attacker didn't answer a cookie honestly
// and in time.
func (a *attacker) read(p []byte) {
	a.result.PacketsIn++
	a.result.BytesIn += uint64(len(p))
	kind, _ := wire.KindOf(p)
	switch {
	case kind == wire.Challenge:
		a.challenged(p)
	case kind == wire.Accept:
		accept, _ := wire.ParseAccept(p)
		if came, honest := a.honest[accept.Nonce]; !honest || a.now-came >= cookieDead {
			a.gotIn++
		}
		a.joined = true
	case kind >= wire.State && a.kind != "replay" && a.kind != "slow":
		a.gotIn++
	}
	if a.kind == "replay" {
		a.client.Handle(p, a.now)
	}
}

// challenged keeps a cookie. For kinds that join honestly, it also notes the time, because an
// answer is honest only while the cookie is good.
func (a *attacker) challenged(p []byte) {
	nonce, cookie, r := wire.ParseChallenge(p)
	if r != 0 {
		return
	}
	a.nonce, a.cookie, a.came = nonce, cookie, a.now
	if a.kind == "replay" || a.kind == "slow" {
		a.honest[nonce] = a.now
	}
}

// flood requests cookies without answering them, and joins with random cookies.
func (a *attacker) flood() []byte {
	if a.random.IntN(2) == 0 {
		return a.hello()
	}
	return a.join(a.random.Uint64(), a.randomCookie())
}

func (a *attacker) hello() []byte {
	a.asked = a.now
	a.packet = wire.AppendHello(a.packet[:0], a.random.Uint64())
	return a.packet
}

func (a *attacker) join(nonce wire.Nonce, cookie wire.Cookie) []byte {
	a.packet = wire.AppendJoin(a.packet[:0], &wire.JoinPacket{Nonce: nonce, Cookie: cookie,
		Name: wire.MakeName(a.kind), Room: wire.AnyRoom})
	return a.packet
}

func (a *attacker) randomCookie() (c wire.Cookie) {
	a.fill(c[:])
	return c
}

func (a *attacker) fill(b []byte) {
	for len(b) >= 8 {
		binary.LittleEndian.PutUint64(b, a.random.Uint64())
		b = b[8:]
	}
	for i := range b {
		b[i] = byte(a.random.Uint32())
	}
}

// forge changes a bit of a cookie, answers a cookie with another nonce, or sends packets in
// sessions of others.
func (a *attacker) forge() []byte {
	switch turn := a.random.IntN(64); {
	case turn == 0 || a.came == 0:
		return a.hello()
	case turn < 16:
		cookie := a.cookie
		bit := a.random.IntN(8 * len(cookie))
		cookie[bit/8] ^= 1 << (bit % 8)
		return a.join(a.nonce, cookie)
	case turn < 32:
		return a.join(a.nonce+1+a.random.Uint64N(1000), a.cookie)
	}
	kind := wire.Inputs + wire.Kind(a.random.IntN(4))
	a.packet = wire.AppendHeader(a.packet[:0], kind, 1+a.random.Uint32N(4096), a.random.Uint32()|1)
	if kind == wire.Inputs {
		a.packet = wire.AppendInputs(a.packet, &wire.InputsPacket{Tick: a.random.Uint32(), Count: 4})
	}
	a.fill(a.packet[wire.Header-8 : wire.Header]) // the MAC
	return a.packet
}

// replay plays honestly, and also repeats old packets of its own.
func (a *attacker) replay() []byte {
	if a.now >= a.tick {
		a.tick = a.now + tickTime
		if p := a.client.Tick(a.now, wire.Input{}); p != nil {
			kept := &a.kept[a.keeps%keptMost]
			// Keep the first packets, with the Join.
			if a.keeps < keptMost/2 || a.keeps%keptMost >= keptMost/2 {
				*kept = append((*kept)[:0], p...)
			}
			a.keeps++
			return p
		}
	}
	if a.keeps == 0 {
		return nil
	}
	return a.kept[a.random.IntN(min(a.keeps, keptMost))]
}

// garbage returns up to 1500 random bytes. Every second packet begins like one of the protocol.
func (a *attacker) garbage() []byte {
	a.packet = slices.Grow(a.packet[:0], 1500)[:a.random.IntN(1501)]
	a.fill(a.packet)
	if len(a.packet) > 4 && a.random.IntN(2) == 0 {
		a.packet[0], a.packet[1] = 1+byte(a.random.IntN(9)), wire.Version
		a.packet[2], a.packet[3] = 0, 0
	}
	return a.packet
}

// slow requests a cookie. It answers at the last moment and then stays silent, or never answers, or
// answers too late.
func (a *attacker) slow() []byte {
	wait := [...]time.Duration{cookieSure, 1 << 62, cookieDead}[a.number%3]
	switch {
	case a.asked == 0 || a.now-a.asked > cookieDead+time.Second:
		a.came, a.joined = 0, false
		return a.hello()
	case a.came > 0 && !a.joined && a.now-a.came >= wait:
		a.joined = true
		return a.join(a.nonce, a.cookie)
	}
	return nil
}

func (a *attacker) end() Result {
	r := a.result
	r.Sent, r.GotIn = map[string]uint64{a.kind: r.PacketsOut}, &a.gotIn
	if a.kind == "replay" {
		r.Joined = a.client.Accepts
	}
	return r
}
