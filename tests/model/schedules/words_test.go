package schedules_test

// order is what a goroutine may be told: to begin an operation, or to go on with the one that it is
// in.
type order uint8

const (
	loadLevel order = iota
	loadRoom
	loadRoomIn     // with In of the scope that the last load of level was given, which may be over
	loadRoomFormer // with In of the scope that the one before was given
	rewindLevel
	rewindRoom
	rewindRoomIn
	rewindFormer // what the last Acquire but one gave
	pinLevel
	pinRoom
	pinFormer
	acquire
	release
	releaseIn
	closeBudget
	operations // how many there are

	goOn   = iota - 1 // it unpins; its finalizer, or the function of its load, returns
	fail              // the function of its load returns an error
	giveUp            // the context ends of who waits for pins; of Close, its ten milliseconds
	orders
)

// inside says whether the operation proves that it is inside of a load of level.
func (o order) inside() bool {
	return o == loadRoomIn || o == loadRoomFormer || o == rewindRoomIn || o == releaseIn
}

func (o order) loads() bool    { return o <= loadRoomFormer }
func (o order) pins() bool     { return o == pinLevel || o == pinRoom || o == pinFormer }
func (o order) releases() bool { return o == release || o == releaseIn }

// place is where a goroutine is. Of those from held on others can't tell which.
type place uint8

const (
	idle   place = iota
	within       // in the function of its load
	pinned
	held // in a finalizer, or waiting

	waits   // held, for pins
	ends    // held, in a finalizer
	outlast // held, since its load's function has ended before what is inside
	places
)

// result is what an operation came to.
type result uint8

const (
	nothing result = iota // yet
	done
	leaks      // a Close that names slots that were never released
	notPinned  // Pin is false
	loading    // ErrLoading
	closed     // ErrClosed
	full       // ErrFull
	failed     // the error of the load's function
	waited     // the error names who has it pinned, and nothing has changed
	unexpected // another error, or a panic
	results
)

// state is that of what a load makes.
type state uint8

const (
	unmade state = iota
	making       // its load is at work
	alive        // Loaded.Get gives it
	ending       // its finalizer is at work
	gone
	broken // none of these: it has other bytes, its finalizer ran twice, or it went without
	states
)

var (
	startNames   = map[bool]string{false: "empty", true: "full"}
	routineNames = [goroutines]string{"g1", "g2", "g3"}
	orderNames   = [orders]string{"load level", "load room", "load room inside", "load room inside the former", "rewind level", "rewind room", "rewind room inside",
		"rewind former room", "pin level", "pin room", "pin former room", "acquire", "release", "release inside", "close", "goes on", "fails", "gives up"}
	placeNames = [places]string{"is idle", "is in the function of its load", "has it pinned", "is held", "waits for pins",
		"is in a finalizer", "waits for what is inside"}
	resultNames = [results]string{"is told nothing", "ok", "ok, but for slots never released", "false", "ErrLoading", "ErrClosed",
		"ErrFull", "the error of its function", "waited in vain", "unexpected"}
	stateNames = [states]string{"doesn't begin", "is being made", "is there", "is being finalized", "is gone", "is broken"}
)
