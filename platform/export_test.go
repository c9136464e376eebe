package platform

// ForgetSpares empties the list, so that a test knows what is on it. The addresses stay reserved.
func ForgetSpares() {
	spare.mutex.Lock()
	defer spare.mutex.Unlock()
	spare.blocks = nil
}
