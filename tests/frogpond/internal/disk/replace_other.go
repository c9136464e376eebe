//go:build !linux

package disk

import (
	"io"
	"path/filepath"
)

// folder is a folder for files that are replaced.
type folder string

func openFolder(name string) (folder, error) { return folder(name), nil }

type entry struct{ path string }

func (f folder) entry(name string) entry { return entry{filepath.Join(string(f), name)} }

// replace writes a new file of head and body, syncs it, and renames it to the entry's name. Unlike
// on Linux, it makes Go allocations.
func (f folder) replace(e *entry, head, body []byte) error {
	return Replace(e.path, func(w io.Writer) error {
		_, err := w.Write(append(head[:len(head):len(head)], body...))
		return err
	})
}

func (folder) close() error { return nil }
