package main

import (
	"bytes"
	"fmt"
	"image/png"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/budgettest"
)

func start(t *testing.T, plan budget.Plan) (*atlas, *httptest.Server) {
	t.Helper()
	b := budgettest.Open(t, plan)
	a, handler := newAtlas(b)
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return a, server
}

func post(t *testing.T, url string, body []byte) (status int, text string) {
	t.Helper()
	r, err := http.Post(url, "", bytes.NewReader(body))
	require.NoError(t, err)
	defer r.Body.Close()
	said, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	return r.StatusCode, string(said)
}

// ground returns a map of one kind. colors returns colors whose red is n, and whose green is the
// kind.
func ground(kind byte) []byte { return bytes.Repeat([]byte{kind}, wide*wide) }

func colors(n byte) (list []byte) {
	for kind := range 256 {
		list = append(list, n, byte(kind), 0)
	}
	return list
}

// TestReloads: twice as many clients as workers ask for tiles while the map and the colors are
// loaded again. Each request gets a tile of one map and one list of colors, never of an older one
// than the tile before.
func TestReloads(t *testing.T) {
	a, server := start(t, plan)
	status := func(status int, _ string) int { return status }
	done := make(chan bool)
	var loaders, clients sync.WaitGroup
	for path, body := range map[string]func(byte) []byte{"/map": ground, "/colors": colors} {
		loaders.Go(func() {
			for n := byte(1); n < 255; n++ { // the first load is beneath clients, too
				select {
				case <-done:
					return
				default:
				}
				if !assert.Equal(t, http.StatusOK, status(post(t, server.URL+path, body(n)))) {
					return
				}
			}
		})
	}
	const requests = 50
	for me := range uint64(2 * plan.Scratch.Workers) {
		clients.Go(func() {
			random := rand.New(rand.NewPCG(1, me))
			var last [2]byte
			for range requests {
				x, y := random.IntN(wide/side), random.IntN(wide/side)
				r, err := http.Get(fmt.Sprintf("%s/tile/%d/%d", server.URL, x, y))
				if !assert.NoError(t, err) {
					return
				}
				tile, err := png.Decode(r.Body)
				r.Body.Close()
				if !assert.NoError(t, err) {
					return
				}
				red, green, _, _ := tile.At(0, 0).RGBA()
				for i := range side * side {
					x, y, _, _ := tile.At(i%side, i/side).RGBA()
					if !assert.Equal(t, [2]uint32{red, green}, [2]uint32{x, y}) {
						return
					}
				}
				assert.GreaterOrEqual(t, byte(red>>8), last[0])
				assert.GreaterOrEqual(t, byte(green>>8), last[1])
				last = [2]byte{byte(red >> 8), byte(green >> 8)}
			}
		})
	}
	clients.Wait()
	close(done)
	loaders.Wait()
	sum := 0
	for _, n := range a.served {
		sum += n
	}
	assert.Equal(t, 2*plan.Scratch.Workers*requests, sum)
}

// TestLoadsStayApart: a load of the map leaves the colors, and the other way round. A refused body
// changes neither.
func TestLoadsStayApart(t *testing.T) {
	a, server := start(t, plan)
	loads := func() [2]bool {
		var list [2]bool
		for i, r := range []budget.Region{a.ground, a.hue} {
			list[i] = r.Report().Used > 0
		}
		return list
	}
	status, _ := post(t, server.URL+"/colors", colors(1))
	require.Equal(t, http.StatusOK, status)
	assert.Equal(t, [2]bool{false, true}, loads())
	status, _ = post(t, server.URL+"/map", ground(2))
	require.Equal(t, http.StatusOK, status)
	assert.Equal(t, [2]bool{true, true}, loads())
	for _, n := range []int{0, wide*wide - 1, wide*wide + 1} {
		status, _ = post(t, server.URL+"/map", make([]byte, n))
		assert.Equal(t, http.StatusBadRequest, status)
	}
	assert.Equal(t, [2]bool{true, true}, loads())
	require.NoError(t, a.hue.Rewind(t.Context()))
	assert.Equal(t, [2]bool{true, false}, loads())
}

// TestWaits: a tile waits for the first loads, until the client gives up.
func TestWaits(t *testing.T) {
	_, server := start(t, plan)
	client := http.Client{Timeout: 20 * time.Millisecond}
	_, err := client.Get(server.URL + "/tile/0/0")
	assert.ErrorContains(t, err, "Client.Timeout")
	for _, path := range []string{"/tile/16/0", "/tile/0/16", "/tile/-1/0", "/tile/a/0", "/tile/0"} {
		post(t, server.URL+"/map", ground(1))
		post(t, server.URL+"/colors", colors(1))
		r, err := http.Get(server.URL + path)
		require.NoError(t, err)
		r.Body.Close()
		assert.Equal(t, http.StatusNotFound, r.StatusCode, path)
	}
}

// TestFull: a request without room in scratch is an error to its client, and its pins end.
func TestFull(t *testing.T) {
	small := plan
	small.Scratch.Size = 8 * budget.KiB
	a, server := start(t, small)
	for range 2 {
		post(t, server.URL+"/map", ground(1))
		post(t, server.URL+"/colors", colors(1))
		r, err := http.Get(server.URL + "/tile/0/0")
		require.NoError(t, err)
		text, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		r.Body.Close()
		assert.Equal(t, http.StatusInternalServerError, r.StatusCode)
		assert.Contains(t, string(text), "raise scratch.size")
	}
	assert.NoError(t, a.ground.Rewind(t.Context()))
}
