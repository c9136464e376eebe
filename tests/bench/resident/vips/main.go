//go:build vips

// Command vips makes thumbnails of photos with govips, which calls libvips. Each goroutine keeps
// its images until all goroutines have made their images. It needs Debian's package libvips-dev,
// hence the build tag vips.
package main

import (
	"bytes"
	"image"
	"image/color"
	"image/jpeg"
	"sync"

	"github.com/davidbyttow/govips/v2/vips"

	"github.com/upfront-mem/upfront/tests/bench/resident/process"
)

func main() {
	defer process.Open()()
	vips.LoggingSettings(nil, vips.LogLevelWarning)
	vips.Startup(nil)
	defer vips.Shutdown()
	process.Main(thumbnails)
}

const photos = 6 // of a goroutine in a round

// thumbnails shrinks photos of different sizes to several widths, and turns them into JPEG.
func thumbnails(goroutine int) (sum uint64, free func(), err error) {
	source, err := photo()
	if err != nil {
		return 0, nil, err
	}
	var images []*vips.ImageRef
	free = func() {
		for _, i := range images {
			i.Close()
		}
	}
	for n := range photos {
		width := 100 + 80*n + 10*goroutine
		i, err := vips.NewThumbnailFromBuffer(source, width, width, vips.InterestingCentre)
		if err != nil {
			return 0, free, err
		}
		images = append(images, i)
		out, _, err := i.ExportJpeg(vips.NewJpegExportParams())
		if err != nil {
			return 0, free, err
		}
		for _, x := range out {
			sum = sum*31 + uint64(x)
		}
	}
	return sum, free, nil
}

// photo returns a JPEG of 1500 × 1000 pixels.
var photo = sync.OnceValues(func() ([]byte, error) {
	picture := image.NewRGBA(image.Rect(0, 0, 1500, 1000))
	for y := range 1000 {
		for x := range 1500 {
			picture.SetRGBA(x, y, color.RGBA{uint8(x * y >> 11), uint8(x ^ y), uint8(x*x>>14 + y), 255})
		}
	}
	var out bytes.Buffer
	err := jpeg.Encode(&out, picture, nil)
	return out.Bytes(), err
})
