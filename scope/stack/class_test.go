package stack

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestClassesAreBounded: a program with too many Objects is refused, with a message of its own.
func TestClassesAreBounded(t *testing.T) {
	used := classes.used
	defer func() { classes.used = used }()
	classes.used = classesMax
	assert.PanicsWithError(t, Misusef("more than %d Objects: declare each once, at package level",
		classesMax-classFirst).Error(), func() { NewClass("one more", 8, nil) })
	assert.EqualValues(t, classesMax, classes.used)
}
