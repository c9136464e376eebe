//upfront:keeps the results of these functions are compared

package main

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/cmplx"
	"math/rand/v2"
)

type function struct {
	name string
	f    func(x, y float64) float64
}

func one(name string, f func(float64) float64) function {
	return function{name, func(x, _ float64) float64 { return f(x) }}
}

// equal have the same results on every target.
var equal = []function{
	one("Sqrt", math.Sqrt), one("Floor", math.Floor), one("Ceil", math.Ceil), one("Trunc", math.Trunc),
	one("Round", math.Round), one("RoundToEven", math.RoundToEven), one("Abs", math.Abs), one("Logb", math.Logb),
	{"Mod", math.Mod}, {"Remainder", math.Remainder}, {"Max", math.Max}, {"Min", math.Min}, {"Dim", math.Dim},
	{"Copysign", math.Copysign}, {"Nextafter", math.Nextafter},
	one("Pow10", func(x float64) float64 { return math.Pow10(int(math.Mod(x, 300))) }),
	one("Frexp", func(x float64) float64 { f, _ := math.Frexp(x); return f }),
	one("Modf", func(x float64) float64 { _, f := math.Modf(x); return f }),
	{"Ldexp", func(x, y float64) float64 { return math.Ldexp(x, int(math.Mod(y, 30))) }},
	{"FMA", func(x, y float64) float64 { return math.FMA(x, y, x) }},
	{"float32", func(x, y float64) float64 { return float64(float32(x) / float32(y)) }},
	{"complex64", func(x, y float64) float64 {
		c, d := complex64(complex(x, y)), complex64(complex(y, 3+x))
		return float64(real(c * d))
	}},
}

// differing have other last bits on arm64 than on amd64.
var differing = []function{
	one("Sin", math.Sin), one("Cos", math.Cos), one("Tan", math.Tan), one("Asin", math.Asin), one("Acos", math.Acos),
	one("Atan", math.Atan), one("Sinh", math.Sinh), one("Cosh", math.Cosh), one("Tanh", math.Tanh),
	one("Asinh", math.Asinh), one("Acosh", math.Acosh), one("Atanh", math.Atanh), one("Exp", math.Exp),
	one("Exp2", math.Exp2), one("Expm1", math.Expm1), one("Log", math.Log), one("Log2", math.Log2),
	one("Log10", math.Log10), one("Log1p", math.Log1p), one("Gamma", math.Gamma), one("Erf", math.Erf),
	one("Erfc", math.Erfc), one("Erfinv", math.Erfinv), one("Erfcinv", math.Erfcinv), one("J0", math.J0),
	one("J1", math.J1), one("Y0", math.Y0), one("Y1", math.Y1),
	{"Pow", math.Pow}, {"Hypot", math.Hypot}, {"Atan2", math.Atan2},
	one("Lgamma", func(x float64) float64 { f, _ := math.Lgamma(x); return f }),
	one("Sincos", func(x float64) float64 { s, _ := math.Sincos(x); return s }),
	one("Jn", func(x float64) float64 { return math.Jn(3, x) }), one("Yn", func(x float64) float64 { return math.Yn(3, x) }),
	{"cmplx.Abs", func(x, y float64) float64 { return cmplx.Abs(complex(x, y)) }},
	{"cmplx.Exp", func(x, y float64) float64 { return real(cmplx.Exp(complex(x, y))) }},
	{"cmplx.Sqrt", func(x, y float64) float64 { return real(cmplx.Sqrt(complex(x, y))) }},
	{"complex128 product", func(x, y float64) float64 { return real(complex(x, y) * complex(y, 3+x)) }},
	{"NormFloat64", func(_, _ float64) float64 {
		bits := uint64(0)
		for range 5 {
			bits ^= math.Float64bits(source.NormFloat64()) << 1
		}
		return math.Float64frombits(bits >> 2)
	}},
	{"complex128 quotient", func(x, y float64) float64 { return real(complex(x, y) / complex(y, 3+x)) }},
}

var source = rand.New(rand.NewPCG(7, 9))

// functions prints a hash of the results of each function for pseudo-random arguments, with one
// bit pattern for all NaNs.
func functions() {
	for _, group := range []struct {
		name string
		list []function
	}{{"equal", equal}, {"differing", differing}} {
		for _, of := range group.list {
			r, h := rand.New(rand.NewPCG(7, 9)), fnv.New64a()
			for _, most := range []float64{1, 10, 700, 1e10} {
				for range 5000 {
					x, y := (r.Float64()*2-1)*most, (r.Float64()*2-1)*most
					result := of.f(x, y)
					if result != result {
						result = 0
					}
					bits := math.Float64bits(result)
					for range 8 {
						_, _ = h.Write([]byte{byte(bits)})
						bits >>= 8
					}
				}
			}
			fmt.Printf("%s %x %s\n", group.name, h.Sum64(), of.name)
		}
	}
}
