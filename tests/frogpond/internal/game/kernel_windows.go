package game

import "syscall"

type handle = syscall.Handle
