// Package forms has float products in the forms that Go programs write. A line with //! must be
// reported. A function's name begins with
//
//	fused    Go fuses a product of it for arm64
//	complex  the same, within a product of complex128
//	exact    the same, and the product has nothing to round
//	silent   the same, and a comment silences the report
//	spare    the language allows to fuse the product, and Go 1.26 doesn't; a later release may
//	apart    no product may be fused
package forms

import "math"

type vector struct{ X, Y float64 }

type ball struct{ At, V vector }

type world struct {
	Balls []ball
	First *ball
	Sum   [4]float64
}

type meters float64

var total float64

func fusedSum(x, y, z float64) float64 {
	return x*y + z //!
}

func fusedDifference(x, y, z float64) float64 {
	return x*y - z //!
}

func fusedSubtracted(x, y, z float64) float64 {
	return z - x*y //!
}

func fusedNegated(x, y, z float64) float64 {
	return -(x * y) + z //!
}

func fusedFloat32(x, y, z float32) float32 {
	return x*y + z //!
}

func fusedNamed(x, y, z meters) meters {
	return x*y + z //!
}

func fusedOtherTerm(x, y, z float64) float64 {
	return x*y + float64(z) //!
}

func fusedTwoProducts(x, y, z, w float64) float64 {
	return x*y + //!
		z*w //!
}

func fusedConstant(x, z float64) float64 {
	return x*0.98 + z //!
}

func fusedVariable(x, y, z float64) float64 {
	t := x * y //!
	return t + z
}

func fusedDeclared(x, y, z float64) float64 {
	var t float64
	t = x * y //!
	r := z
	r += t
	return r
}

func fusedAdded(x, y, z float64) float64 {
	z += x * y //!
	return z
}

func fusedTaken(x, y, z float64) float64 {
	z -= x * y //!
	return z
}

func fusedIncremented(x, y float64) float64 {
	t := x * y //!
	t++
	return t
}

func fusedMultiplied(x, y, z float64) float64 {
	x *= y - 1 //!
	return x + z
}

func fusedTuple(x, y, z float64) float64 {
	a, b := x*y, z //!
	a, b = b, a
	return a + b
}

func fusedBranches(x, y, z float64, up bool) float64 {
	t := x * y //!
	if up {
		return t + z
	}
	return t - z
}

func fusedPointer(p *float64, x, y, z float64) float64 {
	*p = x * y //!
	return *p + z
}

func fusedGlobal(x, y, z float64) float64 {
	total = x * y //!
	return total + z
}

func storeTotal(x, y float64) {
	total = x * y //!
}

func fusedGlobalOfCall(x, y, z float64) float64 {
	storeTotal(x, y)
	return total + z
}

func fusedField(b *ball) {
	b.V.X *= 0.98 //!
	b.At.X += b.V.X
}

func fusedFields(b *ball) {
	b.V.X *= 0.98 //!
	b.V.Y *= 0.98 //!
	b.At.X += b.V.X
	b.At.Y += b.V.Y
}

func fusedStruct(x, y, z float64) float64 {
	v := vector{x * y, 1} //!
	w := v
	return w.X + z
}

func fusedArray(x, y, z float64) float64 {
	v := [3]float64{x * y} //!
	return v[0] + z
}

func fusedLoop(n int) float64 {
	v := 1.3
	for range n {
		v = v*0.98 + 0.1 //!
	}
	return v
}

func product(x, y float64) float64 {
	return x * y //!
}

func fusedResult(x, y, z float64) float64 { return product(x, y) + z }

func sum(x, y float64) float64 { return x + y }

func fusedArgument(x, y, z float64) float64 {
	return sum(x*y, z) //!
}

func (v vector) times(f float64) vector {
	return vector{
		v.X * f, //!
		v.Y * f, //!
	}
}

func (v vector) plus(w vector) vector { return vector{v.X + w.X, v.Y + w.Y} }

func fusedVectors(b *ball, t float64) { b.At = b.At.plus(b.V.times(t)) }

func (v *vector) scale(f float64) {
	v.X *= f //!
	v.Y *= f //!
}

func (v *vector) add(w *vector) {
	v.X += w.X
	v.Y += w.Y
}

func fusedPointers(b *ball, t float64) {
	b.V.scale(t)
	b.At.add(&b.V)
}

func fusedDim(x, y, z float64) float64 {
	return math.Dim(x*y, z) //!
}

func fusedInterface(x, y, z float64) float64 {
	var a any = x * y //!
	return a.(float64) + z
}

func fusedParts(x, y, z float64) float64 {
	return real(complex(x*y, 1)) + z //!
}

func fusedComplexSum(x, y, z float64) complex128 {
	return complex(x*y, 1) + complex(z, z) //!
}

func fusedCaptured(x, y, z float64) float64 {
	t := x * y //!
	f := func() float64 { return t + z }
	return f()
}

func fusedSetByLiteral(x, y, z float64) float64 {
	var t float64
	func() {
		t = x * y //!
	}()
	return t + z
}

func fusedLiteral(x, y, z float64) float64 {
	f := func(a, b float64) float64 {
		return a * b //!
	}
	return f(x, y) + z
}

type multiplier interface{ multiply(x, y float64) float64 }

type plainly struct{}

func (plainly) multiply(x, y float64) float64 {
	return x * y //!
}

func fusedMethod(x, y, z float64) float64 {
	var m multiplier = plainly{}
	return m.multiply(x, y) + z
}

func each(x, y float64) func(func(float64) bool) {
	return func(yield func(float64) bool) {
		yield(x * y) //!
	}
}

func fusedSequence(x, y float64) (s float64) {
	for f := range each(x, y) {
		s += f
	}
	return s
}

func generic[T ~float32 | ~float64](x, y, z T) T {
	return x*y + z //!
}

func fusedGeneric(x, y, z float64) float64 { return generic(x, y, z) }

// Exported returns a product. A caller in another package may add it.
func Exported(x, y float64) float64 {
	return x * y //!
}

// Vector returns products in a struct.
func Vector(x, y float64) vector {
	return vector{X: 1, Y: x * y} //!
}

func spareElement(w *world, i int) {
	w.Balls[i].V.X *= 0.9 //!
	w.Balls[i].At.X += w.Balls[i].V.X
}

func sparePath(w *world) {
	w.First.V.X *= 0.9 //!
	w.First.At.X += w.First.V.X
}

func spareCondition(x, y, z float64, c bool) float64 {
	t := 0.0
	if c {
		t = x * y //!
	}
	return t + z
}

//go:noinline
func accelerate(b *ball) {
	b.V.X *= 0.9 //!
}

//go:noinline
func move(b *ball) { b.At.X += b.V.X }

func spareCalls(b *ball) {
	accelerate(b)
	move(b)
}

func complexProduct(x, y complex128) complex128 {
	return x * y //!
}

func exactHalf(x, z float64) float64 { return x*0.5 + z }

func exactQuotient(x, z float64) float64 { return x/4 + z }

func exactWidened(x, y float32, z float64) float64 { return float64(x)*float64(y) + z }

func exactSmall(x int32, y int16, z float64) float64 { return float64(x)*float64(y) + z }

func exactComplex64(x, y complex64) complex64 { return x * y }

func apartConverted(x, y, z float64) float64 { return float64(x*y) + z }

func apartConvertedLater(x, y, z float64) float64 {
	t := x * y
	return float64(t) + z
}

func apartConvertedBefore(x, y, z float64) float64 {
	t := float64(x * y)
	return t + z
}

func apartOtherType(x, y meters, z float64) float64 { return float64(x*y) + z }

func apartFloat32(x, y float32, z float64) float64 { return float64(x*y) + z }

func apartGeneric[T ~float32 | ~float64](x, y, z T) T { return T(x*y) + z }

func apartOfGeneric(x, y, z float64) float64 { return apartGeneric(x, y, z) }

func apartIntegers(x, y, z int64) float64 { return float64(x*y + z) }

func apartQuotient(x, y, z float64) float64 { return x/y + z }

func apartFactors(x, y, z float64) float64 { return float64((x + y) * z) }

func apartCompared(x, y, z float64) bool { return x*y < z && x+z > y }

func apartLess(x, y, z float64) float64 { return min(x*y, 3) + z }

func apartAbs(x, y, z float64) float64 { return math.Abs(x*y) + z }

func apartRoot(x, y, z float64) float64 { return math.Sqrt(x*x) + z }

func apartRounds(w *world) {
	for i := range w.Balls {
		b := &w.Balls[i]
		b.At.X += b.V.X
		b.V.X *= 0.9
	}
}

func apartPower(x float64, n int) float64 {
	p := 1.0
	for i := 0; i < n; i++ {
		p *= x
	}
	return p + 1
}

func apartReplaced(b *ball) {
	b.V.X *= 0.9
	b.V.X = 3
	b.At.X += b.V.X
}

func apartOtherField(b *ball) {
	b.V.X *= 0.9
	b.At.X += b.V.Y
}

func apartOtherElement(w *world) { w.Sum[1] = w.Sum[0] * 0.9; w.Sum[2] += w.Sum[3] }

func apartConstants() float64 {
	const x, y = 1.5, 2.5
	return x*y + total
}

func silentSum(x, y, z float64) float64 {
	return x*y + z //upfront:keeps it is only shown
}
