//go:build !linux

package watch

import "os"

// terminalSize returns a usual size, and whether the file may be a terminal: a character device.
func terminalSize(file *os.File) (columns, rows int, terminal bool) {
	info, err := file.Stat()
	return 80, 24, err == nil && info.Mode()&os.ModeCharDevice != 0
}
