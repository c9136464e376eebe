package mallocs

var CodeFiles = codeFiles

// SearchFile searches a file by its name.
func SearchFile(name string) []Malloc { return newSearcher(256 << 10).searchFile(name) }
