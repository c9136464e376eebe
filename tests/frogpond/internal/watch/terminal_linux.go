package watch

import (
	"os"

	"golang.org/x/sys/unix"
)

// terminalSize returns the size of a terminal, and whether the file is a terminal.
func terminalSize(file *os.File) (columns, rows int, terminal bool) {
	size, err := unix.IoctlGetWinsize(int(file.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 80, 24, false
	}
	if size.Col == 0 || size.Row == 0 {
		return 80, 24, true
	}
	return int(size.Col), int(size.Row), true
}
