//go:build !race

package main

// untold calls do. There is nobody to tell.
func untold(do func()) { do() }
