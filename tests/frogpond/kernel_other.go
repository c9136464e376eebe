//go:build !unix

package main

import "errors"

// The runtime doesn't run here yet; this file lets the program compile.

// LogFile is a file that lines are appended to.
type LogFile struct{ buffer [160]byte }

func (f *LogFile) open(name string) error { return &badFile{"-log", name, errors.ErrUnsupported} }
func (f *LogFile) write([]byte)           {}
func (f *LogFile) close() error           { return nil }

// Lock is a lock that the kernel keeps.
type Lock struct{ unused int }

func (l *Lock) open() error  { return errors.ErrUnsupported }
func (l *Lock) take()        {}
func (l *Lock) give()        {}
func (l *Lock) close() error { return nil }
