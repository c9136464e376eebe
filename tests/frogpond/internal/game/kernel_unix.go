//go:build unix

package game

type handle = int
