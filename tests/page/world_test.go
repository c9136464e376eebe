package page

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/upfront-mem/upfront/tests/step"
)

// build has the program, axe-core and the screenshots.
const build = "../../build/page"

// world is shared by all tests: a server, its bots, a browser.
var world struct {
	once    sync.Once
	err     error
	origin  string // of the pages, without the last slash
	browser context.Context
	axe     string // its source
	ends    []func()
}

func TestMain(m *testing.M) {
	code := m.Run()
	for i := len(world.ends) - 1; i >= 0; i-- {
		world.ends[i]()
	}
	os.Exit(code)
}

// begin starts the world for the first test that needs it.
func begin(t *testing.T) {
	t.Helper()
	step.Needs(t, step.Gate)
	chromium := "/usr/bin/chromium"
	script := filepath.Join(build, "node_modules/axe-core/axe.min.js")
	type tool struct{ tool, debian string }
	for what, file := range map[tool]string{{"Chromium", "chromium"}: chromium,
		{"axe-core, which make gate ARGS=pages installs,", ""}: script} {
		if _, err := os.Stat(file); err == nil {
			continue
		}
		step.Lacks(t, what.tool, what.debian)
	}
	world.once.Do(func() { world.err = start(chromium, script) })
	if world.err != nil {
		t.Fatal(world.err)
	}
}

func start(chromium, script string) error {
	source, err := os.ReadFile(script)
	if err != nil {
		return err
	}
	world.axe = string(source)
	program, err := filepath.Abs(filepath.Join(build, "frogpond"))
	if err != nil {
		return err
	}
	compile := exec.Command("go", "build", "-o", program, "./tests/frogpond")
	compile.Dir = "../.."
	if out, err := compile.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w: %s", err, out)
	}
	if err := serve(program); err != nil {
		return err
	}
	return browse(chromium)
}

var (
	pageOn = regexp.MustCompile(`page on (http://\S+)/\n`)
	gameOn = regexp.MustCompile(`players on ([^;]+);`)
)

// serve starts a server, and bots in two of its rooms.
func serve(program string) error {
	said, err := run(program, "serve", "-rooms", "6", "-addr", "127.0.0.1:0", "-http", "127.0.0.1:0", "-drain", "0s",
		"-per-address", "0")
	if err != nil {
		return err
	}
	page, err := said.find(pageOn)
	if err != nil {
		return err
	}
	game, err := said.find(gameOn)
	if err != nil {
		return err
	}
	world.origin = page
	_, err = run(program, "bots", "-addr", game, "-n", "24", "-for", "10m")
	return err
}

// browse starts the browser, with a new profile and without requests of its own.
func browse(chromium string) error {
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(chromium), chromedp.NoSandbox,
		chromedp.DisableGPU, chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true))
	allocator, end := chromedp.NewExecAllocator(context.Background(), options...)
	world.ends = append(world.ends, end)
	browser, end := chromedp.NewContext(allocator)
	world.ends = append(world.ends, end)
	world.browser = browser
	return chromedp.Do(browser)
}

// says is the output of a program, as it arrives.
type says struct {
	mu   sync.Mutex
	text strings.Builder
}

// run starts a program, which gets SIGTERM after the tests.
func run(program string, args ...string) (*says, error) {
	c := exec.Command(program, args...)
	out, err := c.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := step.Start(c); err != nil {
		return nil, err
	}
	s := &says{}
	world.ends = append(world.ends, func() {
		_ = c.Process.Signal(syscall.SIGTERM)
		_ = c.Wait() // bots that end early exit with an error
	})
	go s.listen(out)
	return s, nil
}

func (s *says) listen(out io.Reader) {
	for lines := bufio.NewReader(out); ; {
		line, err := lines.ReadString('\n')
		s.mu.Lock()
		s.text.WriteString(line)
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// patience is the longest wait of a test, on a busy machine.
const patience = 5 * time.Minute

func (s *says) find(what *regexp.Regexp) (string, error) {
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		s.mu.Lock()
		found := what.FindStringSubmatch(s.text.String())
		s.mu.Unlock()
		if found != nil {
			return found[1], nil
		}
	}
	return "", errors.New("not said: " + what.String() + "; but: " + s.text.String())
}
