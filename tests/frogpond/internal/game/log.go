package game

import (
	"strconv"

	"github.com/upfront-mem/upfront/scope"
)

// log is a log file, and a lock so that each line stays whole. The systems and each level have a
// log. It is plain data, so an object in a region may contain it.
type log struct {
	lock scope.Addr[lock]
	file scope.Addr[logFile]
}

var (
	lockMaker = scope.Object((*lock).close)
	logMaker  = scope.Object((*logFile).close)
)

// openLog opens a log in s. It makes the lock before the file: finalizers run newest first, so the
// lock still exists when the file closes.
func openLog(s scope.Scope, name string) (l log, err error) {
	made, err := lockMaker.Make(s, (*lock).open)
	if err != nil {
		return l, err
	}
	file, err := logMaker.Make(s, func(f *logFile) error { return f.open(name) })
	if err != nil {
		return l, err
	}
	return log{scope.AddrOf(s, made), scope.AddrOf(s, file)}, nil
}

// note writes a line. Workers may call it at the same time.
func (l *log) note(name, what string, number uint64) {
	lock, file := l.lock.Get(), l.file.Get()
	lock.take()
	file.line(name, what, number)
	lock.give()
}

// line writes a line. It formats in the file's own buffer, since a tick must not allocate.
func (f *logFile) line(name, what string, number uint64) {
	text := append(f.buffer[:0], name...)
	text = append(text, ' ')
	text = append(text, what...)
	text = append(text, ' ')
	text = strconv.AppendUint(text, number, 10)
	f.write(append(text, '\n'))
}

// badFile is an error about a file that a flag names.
type badFile struct {
	flag, name string
	err        error
}

func (e *badFile) Error() string { return e.flag + " " + e.name + ": " + e.err.Error() }
func (e *badFile) Unwrap() error { return e.err }
