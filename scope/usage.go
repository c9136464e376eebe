package scope

// Usage is what scopes of one name, or a label, hold under that name.
type Usage struct {
	Name    string `json:"name"`
	Bytes   uint64 `json:"bytes"`             // held now
	Objects uint64 `json:"objects,omitempty"` // allocations that are live; where they are Counted
	Peak    uint64 `json:"peak"`              // the most Bytes that the name had at once since Open; 0 where it isn't counted

	PeakObjects uint64 `json:"peak_objects,omitempty"` // likewise of Objects

	// Allocated are all Bytes that the name came to hold since Open, also those that are gone; of scopes, but for what C
	// closed, and 0 where it isn't counted.
	Allocated        uint64 `json:"allocated,omitempty"`
	AllocatedObjects uint64 `json:"allocated_objects,omitempty"` // likewise of Objects
}

func (u *Usage) raise() {
	u.Peak, u.PeakObjects = max(u.Peak, u.Bytes), max(u.PeakObjects, u.Objects)
}

// usages is what each name holds now, held most, and (Allocated) no longer holds: a table of planned size. Names beyond it share a
// line.
type usages struct{ lines []Usage } // cap: the places, and one for others

// The lines of what has no name of its own.
const (
	othersName = "others" // names that came when all places were taken
	tempName   = "temp"   // temporaries
	cName      = "C"      // scopes that C opened
)

func (u *usages) has(line int, name string) bool {
	return line < len(u.lines) && u.lines[line].Name == name
}

// empty begins to add up what is held now.
func (u *usages) empty() {
	for i := range u.lines {
		u.lines[i].Bytes, u.lines[i].Objects = 0, 0
	}
}

func (u *usages) add(line int, bytes, objects uint64) {
	u.lines[line].Bytes += bytes
	u.lines[line].Objects += objects
}

// gone adds what a name held until now.
func (u *usages) gone(line int, bytes, objects uint64) {
	u.lines[line].Allocated += bytes
	u.lines[line].AllocatedObjects += objects
}

// all is a line with what it holds among what it ever held.
func (u Usage) all() Usage {
	u.Allocated += u.Bytes
	u.AllocatedObjects += u.Objects
	return u
}

// raise ends what empty began.
func (u *usages) raise() {
	for i := range u.lines {
		u.lines[i].raise()
	}
}

func find(list []Usage, name string) *Usage {
	for i := range list {
		if list[i].Name == name {
			return &list[i]
		}
	}
	return nil
}
