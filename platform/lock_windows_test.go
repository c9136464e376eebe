//go:build !race

package platform

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/windows"
)

// TestLockAdvice covers a refusal that Wine never makes.
func TestLockAdvice(t *testing.T) {
	var limit, most uintptr
	var flags uint32
	windows.GetProcessWorkingSetSizeEx(windows.CurrentProcess(), &limit, &most, &flags)
	err := lockAdvice(windows.ERROR_WORKING_SET_QUOTA, 1<<30)
	require.ErrorIs(t, err, windows.ERROR_WORKING_SET_QUOTA)
	assert.ErrorContains(t, err, fmt.Sprintf(": the minimum working set of this process is %d bytes, "+
		"and this lock needs 1073741824 more: raise it (SetProcessWorkingSetSizeEx)", limit))
	assert.Equal(t, windows.ERROR_INVALID_HANDLE, lockAdvice(windows.ERROR_INVALID_HANDLE, 1<<30))
}
