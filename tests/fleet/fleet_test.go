package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/kubernetes/pkg/apis/core/v1/helper/qos"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"sigs.k8s.io/yaml"

	"github.com/upfront-mem/upfront/tests/step"
)

// TestPrintedPods: Kubernetes' own types decode the tool's output, with no unknown key, and its own
// code calls the pods Guaranteed.
func TestPrintedPods(t *testing.T) {
	step.Needs(t, step.Gate)
	p, err := buildPrograms(t.TempDir())
	require.NoError(t, err)
	d, err := p.deployment("1")
	require.NoError(t, err)
	assert.Equal(t, "apps/v1 Deployment", d.APIVersion+" "+d.Kind)
	assert.Equal(t, d.Spec.Selector.MatchLabels, d.Spec.Template.Labels)

	text, err := output(exec.Command(p.upfront, "plan", "fleet", p.plan, "--json"))
	require.NoError(t, err)
	var said struct {
		Memory struct{ Total int64 }
		Fleet  struct {
			Spec struct {
				Template struct {
					Spec struct{ Template json.RawMessage }
				}
			}
		}
	}
	require.NoError(t, json.Unmarshal(text, &said))
	var ofFleet v1.PodTemplateSpec
	require.NoError(t, yaml.UnmarshalStrict(said.Fleet.Spec.Template.Spec.Template, &ofFleet))

	for _, template := range []v1.PodTemplateSpec{d.Spec.Template, ofFleet} {
		pod := &v1.Pod{Spec: template.Spec}
		assert.Equal(t, v1.PodQOSGuaranteed, qos.ComputePodQOS(pod))
		assert.Equal(t, said.Memory.Total, pod.Spec.Containers[0].Resources.Requests.Memory().Value())
		delete(pod.Spec.Containers[0].Resources.Limits, v1.ResourceCPU) // the control
		assert.Equal(t, v1.PodQOSBurstable, qos.ComputePodQOS(pod))
	}
	assert.Error(t, yaml.UnmarshalStrict([]byte("spec: {replica: 1}"), &appsv1.Deployment{}))
}

func template(memory string) (pod v1.PodTemplateSpec) {
	r := v1.ResourceList{v1.ResourceMemory: resource.MustParse(memory), v1.ResourceCPU: resource.MustParse("10m")}
	pod.Spec.Containers = []v1.Container{{Name: "server", Image: "registry.example/server",
		Resources: v1.ResourceRequirements{Requests: r, Limits: r}}}
	return pod
}

// sizes returns the numbers of pods on the nodes, largest first.
func sizes(p packing) (list []int) {
	for _, pods := range groups(p) {
		list = append(list, len(pods))
	}
	slices.Sort(list)
	slices.Reverse(list)
	return list
}

// TestPack: every server has a node, no node has more than its memory, CPU or pods, a second run
// forms the same groups, and the strategy matters.
func TestPack(t *testing.T) {
	s := shape{memory: 1 << 30, cpu: 4000, pods: 110, nodes: 12}
	for _, c := range []struct {
		memory string
		shape  shape
		want   []int
	}{
		{"100Mi", s, []int{10, 10, 10, 10}},
		{"128Mi", s, []int{8, 8, 8, 8, 8}},
		// by CPU
		{"1Mi", shape{memory: 1 << 30, cpu: 150, pods: 110, nodes: 12}, []int{15, 15, 10}},
		// by pods
		{"1Mi", shape{memory: 1 << 30, cpu: 4000, pods: 30, nodes: 12}, []int{30, 10}},
	} {
		p, err := pack(t.Context(), c.shape, template(c.memory), 40, config.MostAllocated)
		require.NoError(t, err)
		assert.Equal(t, c.want, sizes(p), c)
		again, err := pack(t.Context(), c.shape, template(c.memory), 40, config.MostAllocated)
		require.NoError(t, err)
		assert.ElementsMatch(t, groups(p), groups(again))
	}
	p, err := pack(t.Context(), s, template("100Mi"), 40, config.LeastAllocated)
	require.NoError(t, err)
	assert.Equal(t, []int{4, 4, 4, 4, 3, 3, 3, 3, 3, 3, 3, 3}, sizes(p))
}

// groups returns the pods of each node, without the node's name.
func groups(p packing) (list [][]int) {
	for _, pods := range p.used() {
		list = append(list, pods)
	}
	return list
}

// TestPackTooMuch: a pod that fits no node is reported, with the reason.
func TestPackTooMuch(t *testing.T) {
	s := shape{memory: 1 << 30, cpu: 4000, pods: 110, nodes: 2}
	p, err := pack(t.Context(), s, template("2Gi"), 2, config.MostAllocated)
	require.NoError(t, err)
	assert.Equal(t, []string{"", ""}, p.nodes)
	assert.Contains(t, p.why[0], "2 Insufficient memory")

	p, err = pack(t.Context(), s, template("600Mi"), 3, config.MostAllocated)
	require.NoError(t, err)
	assert.Equal(t, []int{1, 1}, sizes(p))
	assert.Empty(t, p.nodes[2])
	o := offer{uses: [occupations]usage{few: {mean: 1}, some: {mean: 2}}}
	assert.Equal(t, 1, o.outcome(s, p).unplaced)
	assert.Equal(t, uint64(2<<30)-3, o.outcome(s, p).idle)
}

func TestPressure(t *testing.T) {
	uses := [occupations]usage{few: {10, 12}, some: {30, 35}, full: {60, 70}, worst: {90, 99}}
	for _, c := range []struct {
		what           string
		request, limit uint64
		allocatable    uint64
		servers        []occupation
		want           hit
	}{
		{"room for all", 60, 100, 190, []occupation{few, some, full, worst}, hit{}},
		{"one byte less: the one furthest above its request, and that is enough", 60, 100, 189,
			[]occupation{few, some, full, worst}, hit{evicted: 1}},
		{"by their own limit: whose peak is beyond it", 60, 98, 100, []occupation{few, some, full, worst, worst},
			hit{limited: 2}},
		{"then by eviction", 20, 98, 99, []occupation{few, some, full, worst}, hit{limited: 1, evicted: 1}},
		{"from the top: 90 of 180 go, then 60", 20, 100, 31, []occupation{some, full, worst}, hit{evicted: 2}},
		{"nobody is above, and it has to be somebody", 100, 100, 80, []occupation{full, some}, hit{evicted: 1}},
	} {
		o := offer{request: c.request, limit: c.limit, uses: uses}
		assert.Equal(t, c.want, o.pressure(c.allocatable, c.servers), c.what)
	}
}

func TestMoments(t *testing.T) {
	counts := make([][occupations]int, len(moments))
	for i, m := range moments {
		for server := range 1000 {
			counts[i][m.of(server)]++
		}
	}
	assert.Equal(t, [][occupations]int{{334, 333, 333, 0}, {0, 0, 1000, 0}, {300, 300, 300, 100}, {0, 0, 0, 1000}},
		counts)
}

// TestServerLivesInItsLimit: the server plays 64 full rooms in a memory cgroup with the limit that
// the tool prints. In half of it the plan has no room, and the server refuses to start.
func TestServerLivesInItsLimit(t *testing.T) {
	step.Needs(t, step.Gate)
	p, err := buildPrograms(t.TempDir())
	require.NoError(t, err)
	d, err := p.deployment("1")
	require.NoError(t, err)
	limit := uint64(d.Spec.Template.Spec.Containers[0].Resources.Limits.Memory().Value())
	inGroup := filepath.Join(t.TempDir(), "serve")
	script := "#!/bin/sh\necho $$ >" + memoryGroup(t, limit) + "/cgroup.procs && exec " + p.pond + ` "$@"` + "\n"
	require.NoError(t, os.WriteFile(inGroup, []byte(script), 0o700))
	u, err := p.measure(inGroup, nil, load{roomsMost, "all"}, 6*time.Second)
	require.NoError(t, err)
	assert.Less(t, u.peak, limit)
	t.Logf("resident %d at most, of %d", u.peak, limit)

	script = "#!/bin/sh\necho $$ >" + memoryGroup(t, limit/2) + "/cgroup.procs && exec " + p.pond + ` "$@"` + "\n"
	require.NoError(t, os.WriteFile(inGroup, []byte(script), 0o700))
	_, err = p.measure(inGroup, nil, load{roomsMost, "all"}, time.Second)
	assert.ErrorContains(t, err, `budget "serve": the plan needs`)
}

// memoryGroup makes a memory cgroup, of either version, with a limit below this process's own. The
// end of the test removes it.
func memoryGroup(t *testing.T, limit uint64) (folder string) {
	own, err := os.ReadFile("/proc/self/cgroup")
	require.NoError(t, err)
	for line := range strings.Lines(string(own)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		root, file := "/sys/fs/cgroup", "memory.max"
		if fields[1] == "memory" {
			root, file = "/sys/fs/cgroup/memory", "memory.limit_in_bytes"
		} else if fields[0] != "0" {
			continue
		}
		folder, err = os.MkdirTemp(filepath.Join(root, fields[2]), "upfront-test-")
		if err != nil {
			continue
		}
		t.Cleanup(func() { assert.NoError(t, os.Remove(folder)) })
		if err = os.WriteFile(filepath.Join(folder, file), fmt.Append(nil, limit), 0); err == nil {
			return folder
		}
	}
	t.Skip(step.Unproven, "no memory cgroup can be made: ", err)
	return ""
}
