//go:build !linux && !darwin && !windows && !race

package platform

const goBacked = false

var host pages
