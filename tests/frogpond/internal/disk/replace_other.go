//go:build !linux

package disk

import (
	"io"
	"path/filepath"
)

// folder is one whose files are replaced.
type folder string

func openFolder(name string) (folder, error) { return folder(name), nil }

// entry is a file of a folder.
type entry struct{ path string }

func (f folder) entry(name string) entry { return entry{filepath.Join(string(f), name)} }

// replace writes a file, head and then body, beside an entry, and gives it the entry's name once it
// is on the disk. Other than on Linux it takes Go allocations.
func (f folder) replace(e *entry, head, body []byte) error {
	return Replace(e.path, func(w io.Writer) error {
		_, err := w.Write(append(head[:len(head):len(head)], body...))
		return err
	})
}

func (folder) close() error { return nil }
