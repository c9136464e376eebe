//go:build linux && cgo

package main

// #cgo LDFLAGS: -lstdc++
// void *pond_new(int frogs);
// int pond_size(void *pond);
// void pond_delete(void *pond);
import "C"

// object makes objects of a class in C++. It deletes each second one.
func object() (round func() error, err error) {
	return func() error {
		visit(200)
		stay(100)
		return nil
	}, nil
}

func visit(frogs int) int {
	pond := C.pond_new(C.int(frogs))
	defer C.pond_delete(pond)
	return int(C.pond_size(pond))
}

func stay(frogs int) int {
	pond := C.pond_new(C.int(frogs)) // the leak: object
	return int(C.pond_size(pond))
}
