package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/upfront-mem/upfront/budget"
)

func planFleetCommand(t *tool) *cobra.Command {
	f := usualFleet
	c := &cobra.Command{
		Use:   "fleet FILE",
		Short: "writes an Agones Fleet and a Deployment for servers with a plan",
		Long: `Writes two manifests for Kubernetes: a Fleet for Agones, and a plain Deployment.
A server's memory limit is a sum: the plan's resident memory at most, the Go
runtime's share (go_heap), C's heap (c_heap), the quotas of memory that no other
part has, and a reserve for the rest of the process: code, thread stacks, C's
malloc without a c_heap, the kernel's tables and buffers. On nodes with pages of
64 KiB (--pages) more of the plan is resident. A file of checkpoints
(--checkpoints) is in memory of the pod. Requests equal limits, for memory and
CPU. The slots of a region are a counter of rooms. The program must open the
plan in FILE unchanged; Open sets the Go runtime's limit. In the Fleet the
program calls the SDK of Agones; in the Deployment it answers probes. The first
check that may restart it comes after 5 seconds, and one more for each 256 MiB
that Open makes present.`,
		Example: `  upfront plan fleet serve.json --replicas 40 --reserve 48MiB --cpu 2 --spare 2
  upfront plan fleet serve.json --checkpoints 20MiB --upgrade
  upfront plan fleet serve.json --only fleet --name frogs | kubectl apply -f -`,
		Args: takes(1, 1),
		RunE: func(_ *cobra.Command, names []string) error {
			plan, err := readPlan(names[0])
			if err != nil {
				return err
			}
			m, err := f.manifests(names[0], plan)
			if err != nil {
				return err
			}
			return t.print(m, m.write)
		},
	}
	c.Flags().StringVar(&f.only, "only", "", "write only this one: fleet or deployment")
	c.Flags().StringVar(&f.name, "name", "", "name of both, and of the container (default the plan's name)")
	c.Flags().StringVar(&f.image, "image", "",
		"image with the program and its plan (default registry.example/NAME:latest)")
	c.Flags().IntVar(&f.replicas, "replicas", 1, "number of servers")
	c.Flags().IntVar(&f.port, "port", 35035, "UDP port of the program")
	c.Flags().IntVar(&f.health, "health-port", 8080,
		"TCP port of the program's /healthz and /readyz, in the Deployment")
	c.Flags().StringVar(&f.cpu, "cpu", "1", "processors of a server, as Kubernetes writes them: 2, 0.5, 500m")
	c.Flags().Var(&f.reserve, "reserve", "memory of the process in addition to the plan and the Go share")
	c.Flags().Var(&f.pages, "pages", "page size of the nodes: 4KiB or 64KiB")
	c.Flags().Var(&f.checkpoints, "checkpoints", "size of the file of checkpoints, in /checkpoints (default none)")
	c.Flags().BoolVar(&f.upgrade, "upgrade", false, "memory for a second server, which takes over in the container")
	c.Flags().StringVar(&f.rooms, "rooms", "", "region whose slots are rooms (default the one with slots)")
	c.Flags().IntVar(&f.spare, "spare", 0, "slots that no room uses, such as those for the next maps")
	return c
}

// fleetFlags are the properties of servers that aren't in a plan.
type fleetFlags struct {
	only, name, image, cpu, rooms string
	replicas, port, spare, health int
	reserve, pages, checkpoints   sizeFlag
	upgrade                       bool
}

var usualFleet = fleetFlags{reserve: 32 * budget.MiB, pages: 4 * budget.KiB}

// sizeFlag is a size as in a plan file.
type sizeFlag uint64

func (s *sizeFlag) Set(text string) error {
	size, err := budget.ParseSize(text)
	if err != nil {
		return err
	}
	*s = sizeFlag(size)
	return nil
}

func (s *sizeFlag) String() string { // defaults are whole KiB
	if *s == 0 {
		return "0"
	}
	if *s%sizeFlag(budget.MiB) != 0 {
		return fmt.Sprintf("%dKiB", *s/sizeFlag(budget.KiB))
	}
	return fmt.Sprintf("%dMiB", *s/sizeFlag(budget.MiB))
}

func (s *sizeFlag) Type() string { return "size" }

var (
	objectName = regexp.MustCompile(`^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$`) // it may become a label
	cpuAmount  = regexp.MustCompile(`^([0-9]{1,4}(\.[0-9]{1,3})?|[0-9]{1,7}m)$`)
)

// check sets defaults from the plan, and checks the flags.
func (f *fleetFlags) check(plan budget.Plan) error {
	if f.name == "" {
		f.name = strings.Trim(strings.ReplaceAll(plan.Name, "_", "-"), "-")
	}
	if f.image == "" {
		f.image = "registry.example/" + f.name + ":latest"
	}
	switch {
	case f.only != "" && f.only != "fleet" && f.only != "deployment":
		return fmt.Errorf("--only %q: must be fleet or deployment", f.only)
	case !objectName.MatchString(f.name):
		return fmt.Errorf("--name %q: must be a letter, then at most 62 of a-z, 0-9 and -", f.name)
	case strings.ContainsFunc(f.image, unicode.IsSpace):
		return fmt.Errorf("--image %q: must have no spaces", f.image)
	case f.replicas < 0 || f.replicas > math.MaxInt32:
		return fmt.Errorf("--replicas %d: must be 0 to %d", f.replicas, math.MaxInt32)
	case f.pages != 4*budget.KiB && f.pages != 64*budget.KiB:
		return fmt.Errorf("--pages %s: must be 4KiB or 64KiB", f.pages.String())
	case f.port < 1 || f.port > 65535:
		return fmt.Errorf("--port %d: must be 1 to 65535", f.port)
	case f.health < 1 || f.health > 65535:
		return fmt.Errorf("--health-port %d: must be 1 to 65535", f.health)
	case !cpuAmount.MatchString(f.cpu) || strings.Trim(f.cpu, "0.m") == "":
		return fmt.Errorf("--cpu %q: must be an amount such as 2, 0.5 or 500m", f.cpu)
	}
	return nil
}

// slots returns the number of rooms of a server, 0 if no region has slots.
func (f *fleetFlags) slots(regions []budget.RegionPlan) (int, error) {
	var names []string
	rooms := 0
	for _, r := range regions {
		if r.Slots == 0 {
			continue
		}
		if names = append(names, r.Name); f.rooms == "" || f.rooms == r.Name {
			rooms = r.Slots
		}
	}
	switch {
	case len(names) == 0 && (f.rooms != "" || f.spare > 0):
		return 0, errors.New("no region of the plan has slots: leave --rooms and --spare out")
	case f.rooms != "" && !slices.Contains(names, f.rooms):
		return 0, fmt.Errorf("--rooms %q: no region of this name has slots; those with slots: %q", f.rooms, names)
	case f.rooms == "" && len(names) > 1:
		return 0, fmt.Errorf("--rooms is missing: several regions have slots: %q", names)
	case f.spare < 0 || f.spare > 0 && f.spare >= rooms:
		return 0, fmt.Errorf("--spare %d: must leave at least one of %d slots for a room", f.spare, rooms)
	}
	return rooms - f.spare, nil
}

// manifests is the output. The keys of a manifest are those of Kubernetes and Agones.
type manifests struct {
	Plan       string    `json:"plan"`
	Memory     sum       `json:"memory"`
	Fleet      *manifest `json:"fleet,omitempty"`
	Deployment *manifest `json:"deployment,omitempty"`
}

// sum is a server's memory, in bytes.
type sum struct {
	Plan    uint64      `json:"plan"` // resident at most, tables included
	GoShare uint64      `json:"go_share"`
	CHeap   uint64      `json:"c_heap,omitempty"`
	Quotas  uint64      `json:"quotas,omitempty"` // of memory that no other part has
	Reserve uint64      `json:"reserve"`
	Second  uint64      `json:"second,omitempty"` // server, in an upgrade
	Files   uint64      `json:"checkpoints,omitempty"`
	Total   uint64      `json:"total"`
	Cost    budget.Cost `json:"cost"` // of the plan
	present uint64      // by Open
}

func (s sum) String() string {
	cHeap, more := "", ""
	if s.CHeap != 0 {
		cHeap = fmt.Sprintf(" + C heap %d", s.CHeap)
	}
	if s.Quotas != 0 {
		cHeap += fmt.Sprintf(" + quotas %d", s.Quotas)
	}
	if s.Second != 0 {
		more = fmt.Sprintf(" + second server %d", s.Second)
	}
	if s.Files != 0 {
		more += fmt.Sprintf(" + checkpoints %d", s.Files)
	}
	return fmt.Sprintf("%d bytes: plan %d (of %d addresses) + Go share %d%s + reserve %d%s",
		s.Total, s.Plan, s.Cost.Addresses, s.GoShare, cHeap, s.Reserve, more)
}

type manifest struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   metadata `json:"metadata"`
	Spec       any      `json:"spec"`
}

type metadata struct {
	Name        string            `json:"name,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type fleetSpec struct {
	Replicas   int    `json:"replicas"`
	Scheduling string `json:"scheduling"`
	Template   struct {
		Spec struct {
			Ports    []gamePort         `json:"ports"`
			Health   health             `json:"health"`
			Counters map[string]counter `json:"counters,omitempty"`
			Template podTemplate        `json:"template"`
		} `json:"spec"`
	} `json:"template"`
}

type gamePort struct {
	Name          string `json:"name"`
	PortPolicy    string `json:"portPolicy"`
	ContainerPort int    `json:"containerPort"`
	Protocol      string `json:"protocol"`
}

// health is the spec of the SDK's Health: the longest time between two calls of it, and the number
// of such times in a row after which a server is replaced.
type health struct {
	InitialDelay     int `json:"initialDelaySeconds,omitempty"`
	Period           int `json:"periodSeconds"`
	FailureThreshold int `json:"failureThreshold"`
}

type counter struct {
	Count    int `json:"count"`
	Capacity int `json:"capacity"`
}

type deploymentSpec struct {
	Replicas int `json:"replicas"`
	Selector struct {
		MatchLabels map[string]string `json:"matchLabels"`
	} `json:"selector"`
	Template podTemplate `json:"template"`
}

type podTemplate struct {
	Metadata metadata `json:"metadata"`
	Spec     struct {
		Containers []container `json:"containers"`
		Volumes    []volume    `json:"volumes,omitempty"`
	} `json:"spec"`
}

// volume is memory that lasts as long as its pod.
type volume struct {
	Name     string `json:"name"`
	EmptyDir struct {
		Medium    string `json:"medium"`
		SizeLimit string `json:"sizeLimit"`
	} `json:"emptyDir"`
}

type mount struct {
	Name      string `json:"name"`
	MountPath string `json:"mountPath"`
}

type container struct {
	Name      string          `json:"name"`
	Image     string          `json:"image"`
	Ports     []containerPort `json:"ports,omitempty"`
	Liveness  *probe          `json:"livenessProbe,omitempty"`
	Readiness *probe          `json:"readinessProbe,omitempty"`
	Resources struct {
		Requests amounts `json:"requests"`
		Limits   amounts `json:"limits"`
	} `json:"resources"`
	Mounts []mount `json:"volumeMounts,omitempty"`
}

type probe struct {
	Get struct {
		Path string `json:"path"`
		Port int    `json:"port"`
	} `json:"httpGet"`
	health
}

type containerPort struct {
	ContainerPort int    `json:"containerPort"`
	Protocol      string `json:"protocol"`
}

type amounts struct {
	CPU    string `json:"cpu"`
	Memory string `json:"memory"`
}

func (f fleetFlags) manifests(file string, plan budget.Plan) (m manifests, err error) {
	if err := unbounded(plan); err != nil {
		return m, found{fmt.Errorf("%s: %w", file, err)}
	}
	if err = f.check(plan); err != nil {
		return m, err
	}
	rooms, err := f.slots(plan.Regions)
	if err != nil {
		return m, err
	}
	cost, err := plan.Cost()
	if err != nil {
		return m, err
	}
	s := f.sum(cost)
	if plan.Pages.Prefault != budget.Off || plan.Pages.Lock == budget.Wished || plan.Pages.Lock == budget.Required {
		s.present = s.Plan + s.CHeap
	}
	m = manifests{Plan: plan.Name, Memory: s}

	if f.only != "deployment" {
		m.Fleet = &manifest{"agones.dev/v1", "Fleet", metadata{Name: f.name}, f.fleet(s, rooms)}
	}
	if f.only != "fleet" {
		m.Deployment = &manifest{"apps/v1", "Deployment", metadata{Name: f.name}, f.deployment(s)}
	}
	return m, nil
}

// unbounded returns an error for a plan whose memory has no sum.
func unbounded(plan budget.Plan) error {
	switch plan.GoHeap {
	case 0:
		return errors.New("go_heap is 0, so the memory can't be summed up; set go_heap in the plan")
	case budget.Rest:
		return errors.New(`go_heap is "rest", which Open works out from the memory limit; ` +
			`this command works out that limit: set go_heap to a size`)
	}
	return nil
}

func (f fleetFlags) sum(cost budget.Cost) sum {
	s := sum{Plan: cost.Resident4K, GoShare: cost.GoHeap, CHeap: cost.CHeap, Quotas: cost.Quotas,
		Reserve: uint64(f.reserve), Cost: cost}
	if f.pages == 64*budget.KiB {
		s.Plan = cost.Resident64K
	}
	s.Total = s.Plan + s.GoShare + s.CHeap + s.Quotas + s.Reserve
	if f.upgrade {
		s.Second = s.Total
	}
	s.Files = uint64(f.checkpoints)
	s.Total += s.Second + s.Files
	return s
}

func (f fleetFlags) fleet(s sum, rooms int) (spec fleetSpec) {
	spec.Replicas, spec.Scheduling = f.replicas, "Packed"
	game := &spec.Template.Spec
	game.Ports = []gamePort{{"default", "Dynamic", f.port, "UDP"}}
	game.Health = s.health()
	if rooms != 0 {
		game.Counters = map[string]counter{"rooms": {0, rooms}}
	}
	game.Template = f.server(s)
	return spec
}

func (f fleetFlags) deployment(s sum) (spec deploymentSpec) {
	spec.Replicas, spec.Template = f.replicas, f.server(s)
	spec.Selector.MatchLabels = map[string]string{"app": f.name}
	spec.Template.Metadata.Labels = spec.Selector.MatchLabels
	c := &spec.Template.Spec.Containers[0]
	c.Ports = []containerPort{{f.port, "UDP"}, {f.health, "TCP"}}
	probed := func(path string) *probe {
		p := &probe{health: s.health()}
		p.Get.Path, p.Get.Port = path, f.health
		return p
	}
	c.Liveness, c.Readiness = probed("/healthz"), probed("/readyz")
	c.Readiness.InitialDelay = 0 // it isn't ready until it answers
	return spec
}

// health returns Agones' defaults, with more time for the start if Open makes memory present.
func (s sum) health() health {
	return health{InitialDelay: 5 + int((s.present+startRate-1)/startRate), Period: 5, FailureThreshold: 3}
}

// startRate is the memory that Open makes present in a second, at least: 15 µs for each page of
// 4 KiB, where a machine without load takes one or less.
const startRate = 256 * budget.MiB

// server returns the pod of a fleet or a deployment. Its requests equal its limits for all
// resources: Kubernetes' class Guaranteed.
func (f fleetFlags) server(s sum) (p podTemplate) {
	c := container{Name: f.name, Image: f.image}
	c.Resources.Limits = amounts{f.cpu, fmt.Sprint(s.Total)}
	c.Resources.Requests = c.Resources.Limits
	p.Metadata.Annotations = map[string]string{"upfront-memory": s.String()}
	if s.Files != 0 {
		v := volume{Name: "checkpoints"}
		v.EmptyDir.Medium, v.EmptyDir.SizeLimit = "Memory", fmt.Sprint(s.Files)
		p.Spec.Volumes = []volume{v}
		c.Mounts = []mount{{v.Name, "/checkpoints"}}
	}
	p.Spec.Containers = []container{c}
	return p
}

// The lines of comments have two columns more.
const fleetSays = "For Agones: the program must call the SDK's Ready and Health, and set the\n" +
	"counter, as package budget/with/agones does. The pod is Guaranteed only if\n" +
	"Agones' own sidecar has limits: in Helm's values agones.image.sdk, set\n" +
	"cpuLimit to cpuRequest and memoryLimit to memoryRequest."

const deploymentSays = "The program must answer GET /healthz and GET /readyz at the port of the\n" +
	"probes, on all addresses."

const fleetKeeps = "\nAgones replaces a server whose container has ended, with its checkpoints. So let\n" +
	"a supervisor in the container start the program again."

const deploymentKeeps = "\nA container that restarts finds its checkpoints."

const oneServer = "\nIn an upgrade two plans live for a moment: --upgrade adds the second."

func (m manifests) write(w io.Writer) error {
	e := yaml.NewEncoder(w)
	e.SetIndent(2)
	memory := strings.Replace(m.Memory.String(), " + ", "\n+ ", 1)
	for _, d := range []struct {
		*manifest
		says  string
		keeps string
	}{{m.Fleet, memory + "\n" + fleetSays, fleetKeeps},
		{m.Deployment, memory + "\n" + deploymentSays, deploymentKeeps}} {
		if d.manifest == nil {
			continue
		}
		if m.Memory.Files != 0 {
			d.says += d.keeps
			if m.Memory.Second == 0 {
				d.says += oneServer
			}
		}
		node, err := node(d.manifest)
		if err != nil {
			return err
		}
		node.HeadComment = d.says
		if err := e.Encode(node); err != nil {
			return err
		}
	}
	return e.Close()
}

// node returns a value as YAML, with its JSON keys in their order.
func node(value any) (*yaml.Node, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil { // JSON is YAML
		return nil, err
	}
	return document.Content[0], block(&document)
}

// block removes JSON's braces and needless quotes. Strings are encoded again for quotes that
// Kubernetes needs: there, an unquoted no is false.
func block(n *yaml.Node) error {
	n.Style = 0
	if n.Tag == "!!str" {
		return n.Encode(n.Value)
	}
	for _, n := range n.Content {
		if err := block(n); err != nil {
			return err
		}
	}
	return nil
}
