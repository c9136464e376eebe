package cache

// Walk checks all bytes of the cache.
func (c *Bytes) Walk() error { return c.look() }
