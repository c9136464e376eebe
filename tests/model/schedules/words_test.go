package schedules_test

// order is an order to a goroutine: to begin an operation, or to continue its operation.
type order uint8

const (
	loadLevel order = iota
	loadRoom
	loadRoomIn     // with In of the scope of the last load of level, which may have ended
	loadRoomFormer // with In of the scope of the load before
	rewindLevel
	rewindRoom
	rewindRoomIn
	rewindFormer // the result of the last Acquire but one
	pinLevel
	pinRoom
	pinFormer
	acquire
	release
	releaseIn
	closeBudget
	operations // their number

	goOn   = iota - 1 // it unpins; its finalizer, or the function of its load, returns
	fail              // the function of its load returns an error
	giveUp            // the context of a wait for pins ends; for Close, its ten milliseconds
	orders
)

// inside reports whether the operation has the scope of a load of level.
func (o order) inside() bool {
	return o == loadRoomIn || o == loadRoomFormer || o == rewindRoomIn || o == releaseIn
}

func (o order) loads() bool    { return o <= loadRoomFormer }
func (o order) pins() bool     { return o == pinLevel || o == pinRoom || o == pinFormer }
func (o order) releases() bool { return o == release || o == releaseIn }

// place is the place of a goroutine. From held on, the others can't tell which.
type place uint8

const (
	idle   place = iota
	within       // in the function of its load
	pinned
	held // in a finalizer, or waiting

	waits   // held, for pins
	ends    // held, in a finalizer
	outlast // held, because its load's function has ended before a load inside
	places
)

// result is the result of an operation.
type result uint8

const (
	nothing result = iota // yet
	done
	leaks      // Close names slots that weren't released
	notPinned  // Pin is false
	loading    // ErrLoading
	closed     // ErrClosed
	full       // ErrFull
	failed     // the error of the load's function
	waited     // the error names the readers that have it pinned, and nothing has changed
	unexpected // another error, or a panic
	results
)

// state is the state of a load's contents.
type state uint8

const (
	unmade state = iota
	making       // its load is running
	alive        // Loaded.Get returns it
	ending       // its finalizer is running
	gone
	broken // none of these: it has other bytes, its finalizer ran twice, or never
	states
)

var (
	startNames   = map[bool]string{false: "empty", true: "full"}
	routineNames = [goroutines]string{"g1", "g2", "g3"}
	orderNames   = [orders]string{"load level", "load room", "load room inside", "load room inside the former",
		"rewind level", "rewind room", "rewind room inside", "rewind former room", "pin level", "pin room",
		"pin former room", "acquire", "release", "release inside", "close", "goes on", "fails", "gives up"}
	placeNames = [places]string{"is idle", "is in the function of its load", "has it pinned", "is held",
		"waits for pins", "is in a finalizer", "waits for what is inside"}
	resultNames = [results]string{"is told nothing", "ok", "ok, but for slots never released", "false", "ErrLoading",
		"ErrClosed", "ErrFull", "the error of its function", "waited in vain", "unexpected"}
	stateNames = [states]string{"doesn't begin", "is being made", "is there", "is being finalized", "is gone",
		"is broken"}
)
