package platform

// InjectableFaults has the names that InjectFault takes.
var InjectableFaults = requests

// ForgetSpares empties the list, so that a test starts from a known one. The addresses stay
// reserved.
func ForgetSpares() {
	spare.mutex.Lock()
	defer spare.mutex.Unlock()
	spare.blocks = nil
}
