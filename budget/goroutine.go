//go:build amd64 || arm64 || arm

package budget

// goroutine is the address of what the runtime keeps of the goroutine that asks: no two that live have the same, and one has
// the same for life. Go has no call for it but the stack trace, which costs microseconds; workers ask for it whenever they open a
// scope on a pad while something loads. It is never looked into.
func goroutine() uintptr
