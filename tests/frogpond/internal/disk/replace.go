package disk

import (
	"errors"
	"io"
	"os"
	"path/filepath"
)

// Replace writes a file that is whole or not there: write fills one beside it, NAME.new, which takes
// the name once it is on the disk. After an error the name has what it had. What is no regular file,
// such as a pipe or a device, is written to as it is.
func Replace(name string, write func(io.Writer) error) error {
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		file, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(write(file), file.Close())
	}
	if target, err := filepath.EvalSymlinks(name); err == nil {
		name = target
	}
	beside := name + ".new"
	file, err := os.Create(beside)
	if err != nil {
		return err
	}
	if err = write(file); err == nil {
		err = file.Sync()
	}
	err = errors.Join(err, file.Close())
	if err == nil {
		err = os.Rename(beside, name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(beside))
	}
	return syncFolder(filepath.Dir(name))
}
