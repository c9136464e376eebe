package platform

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"golang.org/x/sys/windows"
)

func TestLimitsOfJob(t *testing.T) {
	info := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{JobMemoryLimit: 3 << 30, ProcessMemoryLimit: 1 << 30}
	assert.Empty(t, limitsOfJob(&info, 5), "no flag is set")
	info.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_JOB_MEMORY
	whole := Limit{"job memory limit", 3 << 30, 5, "docker run --memory, or JobMemoryLimit of the job object"}
	assert.Equal(t, []Limit{whole}, limitsOfJob(&info, 5))
	info.BasicLimitInformation.LimitFlags |= windows.JOB_OBJECT_LIMIT_PROCESS_MEMORY
	assert.Equal(t, []Limit{whole, {"job process memory limit", 1 << 30, 5, "ProcessMemoryLimit of the job object"}},
		limitsOfJob(&info, 5))
	info.JobMemoryLimit = 0
	assert.Len(t, limitsOfJob(&info, 5), 1, "0 isn't a limit")
}
