package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/upfront-mem/upfront/budget"
)

const servePlan = "../../../tests/frogpond/serve.json"

// TestPlanFleet compares commands and their output with testdata/fleet.txt.
func TestPlanFleet(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"none.json":  `{"name": "frog_pond", "regions": [{"name": "init", "size": "64KiB"}], "go_heap": "8MiB"}`,
		"two.json":   `{"name": "x", "regions": [{"name": "a", "size": 1, "slots": 2}, {"name": "b", "size": 1, "slots": 3}], "go_heap": "8MiB"}`,
		"digit.json": `{"name": "1_pond", "regions": [{"name": "init", "size": "64KiB"}], "go_heap": "8MiB"}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var all strings.Builder
	for _, command := range []string{
		"plan fleet SERVE",
		"plan fleet SERVE --only fleet --replicas 40 --spare 2 --reserve 48MiB --cpu 2 --name frogs --image " +
			"registry.example/frogs:1 --port 7777",
		"plan fleet DIR/none.json --only deployment",
		"plan fleet DIR/none.json --json",
		"plan fleet DIR/two.json --rooms b --only fleet",
		"plan fleet DIR/two.json",
		"plan fleet DIR/two.json --rooms c",
		"plan fleet DIR/none.json --rooms init",
		"plan fleet DIR/none.json --spare 1",
		"plan fleet DIR/digit.json",
		"plan fleet SERVE --spare 66",
		"plan fleet SERVE --reserve 48M",
		"plan fleet SERVE --cpu 0.0",
		"plan fleet SERVE --cpu 1e3",
		"plan fleet SERVE --pages 16KiB",
		"plan fleet DIR/none.json --only deployment --pages 64KiB",
		"plan fleet SERVE --port 65536",
		"plan fleet SERVE --health-port 0",
		"plan fleet SERVE --replicas -1",
		"plan fleet SERVE --replicas 2147483648",
		"plan fleet SERVE --only fleet --name on --image no",
		"plan fleet SERVE --checkpoints 20MiB",
		"plan fleet SERVE --checkpoints 20MiB --upgrade --only deployment",
		"plan fleet DIR/none.json --checkpoints 20M",
		"plan fleet SERVE --only pod",
		"plan fleet DATA/fine.json",
		"plan fleet DATA/faulty.json",
		"plan fleet DATA/main.json --json",
	} {
		all.WriteString(shown(command, map[string]string{"DATA/": "testdata/", "SERVE": servePlan, "DIR": dir}))
	}
	compare(t, "testdata/fleet.txt", all.String())
}

// TestFleetIsASum checks that memory is the sum of the cost of plan check, the Go share and the
// reserve in both manifests.
func TestFleetIsASum(t *testing.T) {
	var checked checkedPlans
	_, out, _ := runs("plan", "check", servePlan, "--json")
	if err := json.Unmarshal([]byte(out), &checked); err != nil {
		t.Fatal(err)
	}
	code, out, said := runs("plan", "fleet", servePlan, "--reserve", "1000", "--json")
	var m struct {
		Memory     sum
		Fleet      struct{ Spec fleetSpec }
		Deployment struct{ Spec deploymentSpec }
	}
	if err := json.Unmarshal([]byte(out), &m); code != codeFine || err != nil {
		t.Fatal(code, said, err)
	}
	plan := checked.Plans[0].Cost
	want := plan.Resident4K + plan.GoHeap + 1000
	if m.Memory.Plan != plan.Resident4K || m.Memory.Total != want || plan.GoHeap != 64<<20 || m.Memory.Cost != plan {
		t.Errorf("%v, and plan check says %s", m.Memory, plan)
	}
	for _, p := range []podTemplate{m.Fleet.Spec.Template.Spec.Template, m.Deployment.Spec.Template} {
		is := p.Spec.Containers[0].Resources
		if text, _ := json.Marshal(want); is.Limits != is.Requests || is.Limits != (amounts{"1", string(text)}) {
			t.Errorf("%+v, not %d", is, want)
		}
	}
}

// TestFleetHasQuotas: quotas of memory that no other part has are a summand.
func TestFleetHasQuotas(t *testing.T) {
	file := filepath.Join(t.TempDir(), "plan.json")
	text := `{"name": "x", "go_heap": "8MiB", "quotas": {"query": "256MiB", "result": {"size": "4MiB", "in": "go_heap"},
		"gpu": {"size": "8GiB", "in": "device"}}}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, said := runs("plan", "fleet", file, "--json")
	var m struct{ Memory sum }
	if err := json.Unmarshal([]byte(out), &m); code != codeFine || err != nil {
		t.Fatal(code, said, err)
	}
	s := m.Memory
	if s.Quotas != 256<<20 || s.Total != s.Plan+s.GoShare+s.Quotas+s.Reserve {
		t.Errorf("%v", s)
	}
	if !strings.Contains(s.String(), " + quotas 268435456 + reserve ") {
		t.Errorf("%v", s)
	}
}

// TestFleetStart: the time of a start follows the memory that Open makes present. The Deployment
// has probes, and the Fleet, which gets Agones', has none.
func TestFleetStart(t *testing.T) {
	for pages, want := range map[string]int{`{}`: 5 + 5, `{"prefault": "off"}`: 5,
		`{"prefault": "off", "lock": "wished"}`: 5 + 5,
		`{"prefault": "off", "lock": "off"}`:    5, `{"prefault": "required"}`: 5 + 5} {
		file := filepath.Join(t.TempDir(), "plan.json")
		text := `{"name": "x", "regions": [{"name": "a", "size": "1GiB"}], "go_heap": "8MiB", "pages": ` + pages + `}`
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		code, out, said := runs("plan", "fleet", file, "--health-port", "99", "--json")
		var m manifests
		m.Fleet, m.Deployment = &manifest{Spec: &fleetSpec{}}, &manifest{Spec: &deploymentSpec{}}
		if err := json.Unmarshal([]byte(out), &m); code != codeFine || err != nil {
			t.Fatal(code, said, err)
		}
		game := &m.Fleet.Spec.(*fleetSpec).Template.Spec
		inFleet, c := game.Template.Spec.Containers[0], m.Deployment.Spec.(*deploymentSpec).Template.Spec.Containers[0]
		if inFleet.Liveness != nil || inFleet.Readiness != nil {
			t.Error("a probe in the Fleet")
		}
		if got := (health{want, 5, 3}); game.Health != got || c.Liveness.health != got ||
			c.Readiness.health != (health{0, 5, 3}) {
			t.Errorf("%s: %+v, %+v, %+v; want %d", pages, game.Health, c.Liveness, c.Readiness, want)
		}
		if c.Liveness.Get.Path != "/healthz" || c.Readiness.Get.Path != "/readyz" || c.Liveness.Get.Port != 99 ||
			c.Readiness.Get.Port != 99 {
			t.Errorf("%+v, %+v", c.Liveness, c.Readiness)
		}
		if strings.Contains(out, "GOMEMLIMIT") {
			t.Error("GOMEMLIMIT")
		}
	}
}

// TestFleetCheckpoints: the sum has the memory of the checkpoints and of a second server.
func TestFleetCheckpoints(t *testing.T) {
	var m, more struct{ Memory sum }
	for _, c := range []struct {
		flags []string
		to    any
	}{{nil, &m}, {[]string{"--checkpoints", "20451328", "--upgrade"}, &more}} {
		code, out, said := runs(append([]string{"plan", "fleet", servePlan, "--json"}, c.flags...)...)
		if err := json.Unmarshal([]byte(out), c.to); code != codeFine || err != nil {
			t.Fatal(code, said, err)
		}
	}
	if want := 2*m.Memory.Total + 20451328; more.Memory.Total != want {
		t.Errorf("%d, not %d", more.Memory.Total, want)
	}
}

func TestFleetOfARest(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rest.json")
	text := `{"name": "x", "regions": [{"name": "a", "size": "64KiB"}], "go_heap": "rest"}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, said := runs("plan", "fleet", file)
	want := file +
		`: go_heap is "rest", which Open works out from the memory limit; this command works out that limit: set go_heap to a size`
	if code != codeFound || out != "" || !strings.Contains(said, want) {
		t.Error(code, out, said)
	}
	code, out, said = runs("plan", "check", file)
	if want := "Go heap 4096KiB"; code != codeFine || !strings.Contains(out, want) {
		t.Error(code, out, said)
	}
}

func TestFleetImageWithASpace(t *testing.T) {
	for _, image := range []string{" frogs:1", "frogs:1\n", "frogs :1"} {
		code, out, said := runs("plan", "fleet", servePlan, "--image", image)
		if want := fmt.Sprintf("--image %q: must have no spaces\n", image); code != codeTrouble || out != "" ||
			said != want {
			t.Error(code, out, said)
		}
	}
}

// A limit that a machine's memory decides is no figure of a plan.
func TestLimitsOfAMachineAreNotCompared(t *testing.T) {
	a, b := budget.Report{}, budget.Report{}
	a.GoHeap, b.GoHeap = budget.GoHeap{Limit: 1, From: "x"}, budget.GoHeap{Limit: 2, From: "x"}
	if list := differences(a, b); len(list) != 0 {
		t.Error(list)
	}
	a.GoHeap.From, b.GoHeap.From = "", ""
	if list := differences(a, b); len(list) != 1 {
		t.Error(list)
	}
}

// TestFleetPage compares the page with the output.
func TestFleetPage(t *testing.T) {
	page, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(page), "$ upfront plan fleet tests/frogpond/serve.json --only fleet "+
		"--spare 2\n")
	shows, _, ends := strings.Cut(after, "```\n")
	if _, out, _ := runs("plan", "fleet", servePlan, "--only", "fleet", "--spare", "2"); !found || !ends ||
		shows != out {
		t.Errorf("the page should show:\n%s", out)
	}
}
