package cache

import "fmt"

// Walk checks each shard: each live entry has one cell, each cell an entry, and the counts agree.
func (c *Bytes) Walk() error {
	for i := range c.shards {
		if err := c.shards[i].walk(); err != nil {
			return fmt.Errorf("shard %d: %w", i, err)
		}
	}
	return nil
}
