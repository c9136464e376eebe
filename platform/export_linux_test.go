package platform

func LockLimit() (bytes uint64, unlimited bool) { return system.lockLimit() }

func ParseAnonymous(maps string, known ...[2]uint64) []Mapping {
	f := anonymous{maps: procFile{text: []byte(maps)}, names: map[string]string{}}
	for _, k := range known {
		f.known = append(f.known, span{k[0], k[1]})
	}
	return f.appendMappings(nil)
}

func ResidentIn(status []byte) (size uint64, ok bool) { return residentIn(status) }
