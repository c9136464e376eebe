package wire

import (
	"crypto/subtle"
	"encoding/binary"
)

// Cookies makes cookies. A client must return its cookie, and so prove its address, before the
// server keeps any state of the client. The server keeps no cookies: it computes them from a secret
// and the clock.
type Cookies struct{ secret Key }

// Cookie is the time when it was made, in units of cookieUnit, and 12 bytes of a MAC.
type Cookie [16]byte

// cookieUnit is a unit of time, in seconds. A cookie is good for its unit and the next.
const cookieUnit = 8

// MakeCookies returns Cookies with a secret: 32 bytes from crypto/rand that only the server has.
func MakeCookies(secret Key) Cookies { return Cookies{secret} }

// Make returns the cookie for an address of at most 64 bytes, with its port, at a time in seconds.
func (c *Cookies) Make(m *Mac, address []byte, nonce Nonce, now uint32) Cookie {
	return c.of(m, address, nonce, now/cookieUnit)
}

// Check reports whether a cookie was made for the address, in this unit of time or the last.
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
	text = append(text, byte(len(address))) // so that an address can't extend into the nonce
	text = append(text, address...)
	text = binary.LittleEndian.AppendUint64(text, nonce)
	text = binary.LittleEndian.AppendUint32(text, unit)
	sum := m.sum(&c.secret, len(text))
	binary.LittleEndian.PutUint32(cookie[:], unit)
	copy(cookie[4:], sum[:])
	return cookie
}

// SessionKey returns the key of a session that begins with a Join. A repeated Join gets the same
// key.
func (c *Cookies) SessionKey(m *Mac, session uint32, nonce Nonce, cookie Cookie) Key {
	text := append(m.buffer[block:block], "session"...)
	text = binary.LittleEndian.AppendUint32(text, session)
	text = binary.LittleEndian.AppendUint64(text, nonce)
	text = append(text, cookie[:]...)
	return m.sum(&c.secret, len(text))
}
