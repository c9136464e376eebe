package wire

import (
	"crypto/subtle"
	"encoding/binary"
)

// Cookies makes what a client must say again before anything is kept of it, and so proves that it
// is where it says. Nothing is kept of the cookies either: a secret and the clock tell them.
type Cookies struct{ secret Key }

// Cookie is the time at which it was made, in units, and 12 bytes of a MAC.
type Cookie [16]byte

// cookieUnit is how many seconds a cookie is of; it is good for that unit and the next.
const cookieUnit = 8

// MakeCookies takes a secret, which nobody else has: 32 bytes from crypto/rand.
func MakeCookies(secret Key) Cookies { return Cookies{secret} }

// Make is the cookie for an address of at most 64 bytes, with its port, at a time in seconds.
func (c *Cookies) Make(m *Mac, address []byte, nonce Nonce, now uint32) Cookie {
	return c.of(m, address, nonce, now/cookieUnit)
}

// Check says whether a cookie was made for the address, in this unit of time or the last.
func (c *Cookies) Check(m *Mac, address []byte, nonce Nonce, now uint32, cookie Cookie) bool {
	unit := binary.LittleEndian.Uint32(cookie[:])
	if age := now/cookieUnit - unit; age > 1 {
		return false
	}
	want := c.of(m, address, nonce, unit)
	return subtle.ConstantTimeCompare(want[:], cookie[:]) == 1
}

func (c *Cookies) of(m *Mac, address []byte, nonce Nonce, unit uint32) (cookie Cookie) {
	text := append(m.buffer[block:block], "cookie"...)
	text = append(text, byte(len(address))) // so that no address goes on in the nonce
	text = append(text, address...)
	text = binary.LittleEndian.AppendUint64(text, nonce)
	text = binary.LittleEndian.AppendUint32(text, unit)
	sum := m.sum(&c.secret, len(text))
	binary.LittleEndian.PutUint32(cookie[:], unit)
	copy(cookie[4:], sum[:])
	return cookie
}

// SessionKey is the key of a session that a Join began: the same for the same Join, said again.
func (c *Cookies) SessionKey(m *Mac, session uint32, nonce Nonce, cookie Cookie) Key {
	text := append(m.buffer[block:block], "session"...)
	text = binary.LittleEndian.AppendUint32(text, session)
	text = binary.LittleEndian.AppendUint64(text, nonce)
	text = append(text, cookie[:]...)
	return m.sum(&c.secret, len(text))
}
