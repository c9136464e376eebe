package cache

import "unsafe"

// BytesOf returns the words and entries of a cache, without its keys.
func BytesOf[K comparable, V any](c *Of[K, V]) []byte {
	size := unsafe.Sizeof(ofWords{}) + uintptr(c.n)*unsafe.Sizeof(ofEntry{})
	return unsafe.Slice((*byte)(unsafe.Pointer(c.words)), size)
}

// Look checks an image of them.
func Look(image []byte, n int) error {
	w, entries, _ := layOf[struct{}](image, n)
	return look(w, entries)
}

// Keys returns the keys of the entries, and the remembered ones.
func Keys[K comparable, V any](c *Of[K, V]) []K { return c.keys }

// Replace is the call of a Restore before it replaces the bytes of a cache.
func Replace[K comparable, V any](c *Of[K, V]) error { return c.still(true) }

// Waits returns the number of goroutines that wait for a load or finalizer of c.
func Waits[K comparable, V any](c *Of[K, V]) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for r := c.running; r != nil; r = r.next {
		n += int(r.waiting)
	}
	return n
}
