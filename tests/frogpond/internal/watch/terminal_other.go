//go:build !linux

package watch

import "os"

// terminalSize is what every terminal has; a character device may be one.
func terminalSize(file *os.File) (columns, rows int, terminal bool) {
	info, err := file.Stat()
	return 80, 24, err == nil && info.Mode()&os.ModeCharDevice != 0
}
