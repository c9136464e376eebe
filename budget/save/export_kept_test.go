package save

// Tenants are where an image of a ring of one state has what keeps words of its own: from, to.
func Tenants(r *Ring) (list [][2]int) {
	p := &r.parts[0]
	for i := range p.tenants {
		from := p.from + int(p.tenants[i].at)
		list = append(list, [2]int{from, from + int(p.tenants[i].size)})
	}
	return list
}

// TenantNames are theirs.
func TenantNames(r *Ring) (names []string) {
	for _, t := range r.parts[0].tenants {
		names = append(names, t.name)
	}
	return names
}
