package disk

import (
	"errors"
	"io"
	"os"
	"path/filepath"
)

// Replace writes a file that is whole or absent after a crash: write fills NAME.new, which is
// renamed once it is on the disk. If write fails, NAME is unchanged. If NAME is a pipe or a device,
// write fills it directly.
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
