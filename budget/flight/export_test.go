package flight

import "os"

// OpenBy has files opened by another function until restore.
func OpenBy(open func(path string, flag int, mode os.FileMode) (*os.File, error)) (restore func()) {
	openFile = open
	return func() { openFile = os.OpenFile }
}
