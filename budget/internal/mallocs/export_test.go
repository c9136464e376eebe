package mallocs

import "bytes"

// Search searches a file with a buffer of a size.
func Search(file []byte, buffer int) []Malloc {
	return newSearcher(buffer).search(bytes.NewReader(file), uint64(len(file)))
}
