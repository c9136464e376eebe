// Package apiserver tests the manifests that `upfront plan fleet` prints: it creates them in an API
// server of Kubernetes. The server is k8s.io/apiextensions-apiserver's, with etcd, in this process.
// testdata/fleet.yaml defines Fleets, with the keys that the tool prints. This server has no
// Deployments. For Deployments, the test calls the code that validates them in kube-apiserver.
package apiserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	extensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	"k8s.io/apiextensions-apiserver/test/integration/fixtures"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/etcd3/testserver"
	"k8s.io/apiserver/pkg/warning"
	clientrest "k8s.io/client-go/rest"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/apps"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	"k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	"k8s.io/kubernetes/pkg/registry/apps/deployment"
	"k8s.io/kubernetes/pkg/registry/core/podtemplate"
	"sigs.k8s.io/yaml"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/tests/step"
)

const root = "../../.."

// serve is the plan of frogpond's server: 66 slots, and 174 MB that Open makes present.
const serve = root + "/tests/frogpond/serve.json"

// TestFleet creates the Fleets of several plans and flags, then Fleets with one fault each.
func TestFleet(t *testing.T) {
	step.Needs(t, step.Soak)
	u := build(t)
	s := start(t)

	for i, c := range cases {
		t.Run(fmt.Sprint(filepath.Base(c.plan), c.flags), func(t *testing.T) { c.check(t, u, s, i) })
	}
	printed := u.prints(t, serve, "--only", "fleet")
	t.Run("each key", func(t *testing.T) { eachKey(t, s, printed) })
	for _, f := range faults {
		t.Run(f.write, func(t *testing.T) {
			text := strings.Replace(string(printed), f.instead, f.write, 1)
			require.NotEqual(t, string(printed), text)
			status, answer := s.create(t, metav1.NamespaceDefault, "application/yaml", []byte(text), strict, dry)
			assert.Contains(t, []int{http.StatusBadRequest, http.StatusUnprocessableEntity}, status)
			assert.Contains(t, answer, f.says)
		})
	}
	t.Run("not strict", func(t *testing.T) {
		// The control of the parameter: without it, the server drops the key.
		text := strings.Replace(string(printed), "replicas: 1", "replica: 1\n  replicas: 1", 1)
		status, answer := s.create(t, metav1.NamespaceDefault, "application/yaml", []byte(text), dry)
		assert.Equal(t, http.StatusCreated, status, answer)
	})
}

// upfront is the path of the tool.
type upfront string

// build builds the tool, until the test ends.
func build(t *testing.T) upfront {
	path := filepath.Join(t.TempDir(), "upfront")
	out, err := exec.Command("go", "build", "-C", root+"/budget/cmd", "-o", path, "./upfront").CombinedOutput()
	require.NoError(t, err, string(out))
	return upfront(path)
}

// prints returns the manifests of a plan.
func (u upfront) prints(t *testing.T, plan string, flags ...string) []byte {
	c := exec.Command(string(u), append([]string{"plan", "fleet", plan}, flags...)...)
	out, err := c.Output()
	require.NoError(t, err, "%s", c)
	return out
}

// A printing is a command, and the values that its manifests must have.
type printing struct {
	plan  string
	flags []string
	rooms int64 // 0 without slots
	start int32 // seconds
}

var cases = slices.Concat([]printing{
	{serve, nil, 66, 6},
	{serve, []string{"--spare", "2", "--replicas", "40", "--cpu", "2", "--name", "frogs", "--image",
		"registry.example/frogs:1", "--port", "7777"}, 64, 6},
	{serve, []string{"--pages", "64KiB", "--reserve", "48MiB", "--cpu", "500m", "--health-port", "65535"}, 66, 6},
	{serve, []string{"--reserve", "1001", "--cpu", "0.001", "--port", "1", "--replicas", "0"}, 66, 6},
	{serve, []string{"--cpu", "9999.999", "--port", "65535", "--replicas", "2147483647", "--name",
		strings.Repeat("n", 63)}, 66, 6},
	{serve, []string{"--spare", "65"}, 1, 6},
	{serve, []string{"--checkpoints", "20MiB"}, 66, 6},
	{root + "/budget/testdata/plans/server.json", nil, 16, 6},
	{root + "/budget/testdata/plans/every-key.json", nil, 4096, 5},
	{root + "/budget/testdata/plans/frogpond.json", nil, 0, 6},
	{root + "/cross/cortex-a76-16k.json", nil, 0, 11},
}, words())

// words are names and images that are words of YAML, in one of its versions.
func words() (list []printing) {
	for _, word := range []string{"y", "n", "yes", "no", "on", "off", "true", "false", "null"} {
		list = append(list, printing{serve, []string{"--name", word}, 66, 6})
	}
	for _, word := range []string{"on", "1e3", "0x1f", "1_000", "12:30", "2026-01-01"} {
		list = append(list, printing{serve, []string{"--image", word}, 66, 6})
	}
	return list
}

// fleet is the part of a Fleet that depends on plans and flags.
type fleet struct {
	Metadata metav1.ObjectMeta
	Spec     struct {
		Replicas int32
		Template struct {
			Spec struct {
				Ports    []struct{ ContainerPort int32 }
				Health   struct{ InitialDelaySeconds int32 }
				Counters map[string]struct{ Count, Capacity int64 }
				Template json.RawMessage
			}
		}
	}
}

// flag returns the value of a flag.
func (c printing) flag(name, otherwise string) string {
	if i := slices.Index(c.flags, "--"+name); i >= 0 {
		return c.flags[i+1]
	}
	return otherwise
}

// memory works out the memory limit again, from the plan.
func (c printing) memory(t *testing.T) int64 {
	plan, err := budget.ReadPlan(c.plan)
	require.NoError(t, err)
	cost, err := plan.Cost()
	require.NoError(t, err)
	reserve, err := budget.ParseSize(c.flag("reserve", "32MiB"))
	require.NoError(t, err)
	resident := cost.Resident4K
	if c.flag("pages", "") == "64KiB" {
		resident = cost.Resident64K
	}
	checkpoints, err := budget.ParseSize(c.flag("checkpoints", "0"))
	require.NoError(t, err)
	return int64(resident + cost.GoHeap + cost.CHeap + reserve + checkpoints)
}

// check creates both manifests, in a namespace of their own, and compares them with the plan and
// the flags.
func (c printing) check(t *testing.T, u upfront, s *server, i int) {
	namespace := "of-" + strconv.Itoa(i)
	printed := u.prints(t, c.plan, append(c.flags, "--only", "fleet")...)
	status, answer := s.create(t, namespace, "application/yaml", printed, strict)
	require.Equal(t, http.StatusCreated, status, "%s\n%s", answer, printed)
	require.Empty(t, answer) // no warnings

	// The server keeps the Fleet as it was printed.
	var f fleet
	var is, was map[string]any
	plan, err := budget.ReadPlan(c.plan)
	require.NoError(t, err)
	name := c.flag("name", strings.ReplaceAll(plan.Name, "_", "-"))
	body := s.get(t, namespace, name)
	require.NoError(t, json.Unmarshal(body, &f))
	require.NoError(t, json.Unmarshal(body, &is))
	require.NoError(t, yaml.Unmarshal(printed, &was))
	assert.Equal(t, was["spec"], is["spec"])
	assert.Equal(t, name, f.Metadata.Name)
	assert.Equal(t, c.flag("replicas", "1"), fmt.Sprint(f.Spec.Replicas))
	game := f.Spec.Template.Spec
	assert.Equal(t, c.flag("port", "35035"), fmt.Sprint(game.Ports[0].ContainerPort))
	assert.Equal(t, c.start, game.Health.InitialDelaySeconds)
	assert.Equal(t, c.rooms, game.Counters["rooms"].Capacity)
	assert.Zero(t, game.Counters["rooms"].Count)

	// Agones makes pods of the template.
	template := &core.PodTemplate{}
	admit(t, podtemplate.Strategy, template,
		[]byte(`{"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "x"}, "template": `+
			string(game.Template)+"}"))
	d := &apps.Deployment{}
	admit(t, deployment.Strategy, d, u.prints(t, c.plan, append(c.flags, "--only", "deployment")...))
	assert.Equal(t, name, d.Name)
	assert.Equal(t, f.Spec.Replicas, d.Spec.Replicas)
	for _, pod := range []core.PodTemplateSpec{template.Template, d.Spec.Template} {
		server := pod.Spec.Containers[0]
		assert.Equal(t, c.flag("image", "registry.example/"+name+":latest"), server.Image)
		assert.Empty(t, server.Env) // no GOMEMLIMIT: Open sets the limit of Go's runtime
		assert.Equal(t, server.Resources.Limits, server.Resources.Requests)
		memory, cpu := server.Resources.Limits[core.ResourceMemory], server.Resources.Limits[core.ResourceCPU]
		assert.Equal(t, c.memory(t), memory.Value())
		assert.Positive(t, cpu.MilliValue())
		for i, v := range pod.Spec.Volumes {
			assert.Equal(t, core.StorageMediumMemory, v.EmptyDir.Medium)
			assert.Equal(t, c.flag("checkpoints", ""), fmt.Sprint(v.EmptyDir.SizeLimit.Value()>>20, "MiB"))
			assert.Equal(t, core.VolumeMount{Name: v.Name, MountPath: "/checkpoints"}, server.VolumeMounts[i])
		}
		assert.Equal(t, c.flag("checkpoints", "") != "", len(pod.Spec.Volumes) == 1)
	}
	inFleet, alone := template.Template.Spec.Containers[0], d.Spec.Template.Spec.Containers[0]
	assert.Nil(t, inFleet.LivenessProbe) // Agones adds its own
	assert.Nil(t, inFleet.ReadinessProbe)
	for path, probe := range map[string]*core.Probe{"/healthz": alone.LivenessProbe, "/readyz": alone.ReadinessProbe} {
		require.NotNil(t, probe, path)
		assert.Equal(t, path, probe.HTTPGet.Path)
		assert.Equal(t, c.flag("health-port", "8080"), probe.HTTPGet.Port.String())
	}
	assert.Equal(t, c.start, alone.LivenessProbe.InitialDelaySeconds)
}

// admit decodes a manifest with no unknown key, and does with it as kube-apiserver does before it
// stores an object.
func admit(t *testing.T, strategy rest.RESTCreateStrategy, into runtime.Object, text []byte) {
	t.Helper()
	require.NoError(t, tryAdmit(strategy, into, text), string(text))
}

var decoder = serializer.NewCodecFactory(legacyscheme.Scheme, serializer.EnableStrict).UniversalDecoder()

// warnings are errors too.
type warnings []string

func (w *warnings) AddWarning(_, text string) { *w = append(*w, text) }

func tryAdmit(strategy rest.RESTCreateStrategy, into runtime.Object, text []byte) error {
	text, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return err
	}
	_, kind, err := decoder.Decode(text, nil, into)
	if err != nil {
		return err
	}
	object := into.(metav1.Object)
	rest.FillObjectMetaSystemFields(object)
	object.SetNamespace(metav1.NamespaceDefault)
	var said warnings
	ctx := warning.WithWarningRecorder(request.WithNamespace(request.NewContext(), metav1.NamespaceDefault), &said)
	ctx = request.WithRequestInfo(ctx, &request.RequestInfo{APIGroup: kind.Group, APIVersion: kind.Version})
	if err = rest.BeforeCreate(strategy, ctx, into); err == nil && len(said) > 0 {
		err = fmt.Errorf("warnings: %q", said)
	}
	return err
}

// TestDeployment is the control of admit: faults in a Deployment are refused, with their key.
func TestDeployment(t *testing.T) {
	step.Needs(t, step.Soak)
	text := build(t).prints(t, serve, "--only", "deployment")
	require.NoError(t, tryAdmit(deployment.Strategy, &apps.Deployment{}, text))
	for _, f := range []fault{
		{"replicas: 1", "replica: 1", `unknown field "spec.replica"`},
		{"replicas: 1", "replicas: one", "replicas"},
		{"replicas: 1", "replicas: -1", "spec.replicas"},
		{"app: serve", "app: other", "spec.template.metadata.labels"},
		{"livenessProbe", "livenesProbe", `unknown field "spec.template.spec.containers[0].livenesProbe"`},
		{"path: /healthz", "pat: /healthz",
			`unknown field "spec.template.spec.containers[0].livenessProbe.httpGet.pat"`},
		{"port: 8080", "port: 0", "containers[0].livenessProbe.httpGet.port"},
		{`cpu: "1"`, `cpu: "2"`, "containers[0].resources.requests"},
		{"protocol: UDP", "protocol: QUIC", "containers[0].ports[0].protocol"},
		{"image: registry.example/serve:latest", "image: ''", "containers[0].image"},
	} {
		with := strings.Replace(string(text), f.instead, f.write, 1)
		require.NotEqual(t, string(text), with)
		assert.ErrorContains(t, tryAdmit(deployment.Strategy, &apps.Deployment{}, []byte(with)), f.says, f.write)
	}
}

// A fault replaces a text of the manifest. The answer must contain says.
type fault struct{ instead, write, says string }

const container = "spec.template.spec.template.spec.containers[0]"

var faults = []fault{
	{"resources:", "livenessProbe: {httpGet: {path: /healthz, port: 8080}}\n              resources:",
		`unknown field "` + container + `.livenessProbe"`},
	{"resources:", "readinessProbe: {httpGet: {path: /readyz, port: 8080}}\n              resources:",
		`unknown field "` + container + `.readinessProbe"`},
	{"resources:", "env: [{name: GOMEMLIMIT, value: 64MiB}]\n              resources:",
		`unknown field "` + container + `.env"`},
	{`cpu: "1"`, `cpu: "2"`, container + ".resources: Invalid value: requests differ from limits"},
	{`cpu: "1"`, `cpu: one`, container + `.resources.requests.cpu: Invalid value: "one": must be an amount above 0`},
	{`cpu: "1"`, `cpu: "0"`, container + `.resources.requests.cpu: Invalid value: "0": must be an amount above 0`},
	{`cpu: "1"`, `cpu: 1`, container + ".resources.requests.cpu"},
	{"count: 0", "count: 67", "spec.template.spec.counters.rooms: Invalid value: count is beyond capacity"},
	{"count: 0", "count: -1", "spec.template.spec.counters.rooms.count"},
	{"capacity: 66", `capacity: "66"`, "spec.template.spec.counters.rooms.capacity"},
	{"capacity: 66", "capacity: 0", "spec.template.spec.counters.rooms.capacity"},
	{"rooms:", "seats:", `unknown field "spec.template.spec.counters.seats"`},
	{"containerPort: 35035", "containerPort: 0", "spec.template.spec.ports[0].containerPort"},
	{"containerPort: 35035", "containerPort: 65536", "spec.template.spec.ports[0].containerPort"},
	{"protocol: UDP", "protocol: udp", "spec.template.spec.ports[0].protocol"},
	{"portPolicy: Dynamic", "portPolicy: Any", "spec.template.spec.ports[0].portPolicy"},
	{"replicas: 1", "replicas: -1", "spec.replicas"},
	{"replicas: 1", "replicas: 2147483648", "spec.replicas"},
	{"replicas: 1", "replicas: 1.5", "spec.replicas"},
	{"replicas: 1", "replicas: 1\n  replicas: 1", `key "replicas" already set`},
	{"scheduling: Packed", "scheduling: Full", "spec.scheduling"},
	{"failureThreshold: 3", "failureThreshold: 0", "spec.template.spec.health.failureThreshold"},
	{"name: serve", "name: frog_pond", "metadata.name"},
	{"name: serve", "name: no", "name"},
	{"kind: Fleet", "kind: Flet", "Flet"},
	{"agones.dev/v1", "agones.dev/v2", `version "v2"`},
}

// inWords has the keys that a message names without their path, by the fault and the path.
var inWords = map[string]string{
	"no apiVersion":       "the API version in the data ()",
	"no kind":             "Object 'Kind' is missing",
	"1 for metadata":      "type v1.ObjectMeta",
	"1 for metadata.name": "ObjectMeta.name",
}

// eachKey puts three faults at each key of a Fleet: another key next to it, no key, and a value of
// another type. The server must name the path.
func eachKey(t *testing.T, s *server, printed []byte) {
	var f map[string]any
	require.NoError(t, yaml.Unmarshal(printed, &f))
	refused := func(fault, says string) {
		text, err := json.Marshal(f)
		require.NoError(t, err)
		status, answer := s.create(t, metav1.NamespaceDefault, "application/json", text, strict, dry)
		assert.Contains(t, []int{http.StatusBadRequest, http.StatusUnprocessableEntity}, status, fault)
		if words, ok := inWords[fault]; ok {
			says = words
		}
		assert.Contains(t, answer, says, fault)
	}
	keys := 0
	var visit func(path string, value any)
	visit = func(path string, value any) {
		switch value := value.(type) {
		case []any:
			for i, v := range value {
				visit(fmt.Sprintf("%s[%d]", path, i), v)
			}
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(value)) {
				keys++
				at, was := strings.TrimPrefix(path+"."+key, "."), value[key]
				visit(at, was)

				value[key+"X"] = was
				refused(at+"X", fmt.Sprintf("unknown field %q", at+"X"))
				delete(value, key+"X")
				if key != "counters" { // a plan without slots has none
					delete(value, key)
					refused("no "+at, at)
				}
				value[key] = 1
				if _, number := was.(float64); number {
					value[key] = "1"
				}
				refused(fmt.Sprint(value[key], " for ", at), at)
				value[key] = was
			}
		}
	}
	visit("", f)
	assert.Equal(t, 37, keys)
}

// server is an API server with the definition of a Fleet.
type server struct {
	client  *http.Client
	address string // with the path to the namespaces
}

// parameters of a request
const (
	strict = "fieldValidation=Strict" // as kubectl asks for
	dry    = "dryRun=All"
)

// start starts etcd and an API server in this process, until the test ends.
func start(t *testing.T) *server {
	t.Setenv("KUBE_INTEGRATION_ETCD_URL", testserver.RunEtcd(t, nil).Endpoints()[0])
	stop, config, _, err := fixtures.StartDefaultServer(t)
	require.NoError(t, err)
	t.Cleanup(stop)

	text, err := os.ReadFile("testdata/fleet.yaml")
	require.NoError(t, err)
	definition := &extensions.CustomResourceDefinition{}
	require.NoError(t, yaml.UnmarshalStrict(text, definition))
	extended, err := clientset.NewForConfig(config)
	require.NoError(t, err)
	_, err = fixtures.CreateNewV1CustomResourceDefinitionWatchUnsafe(definition, extended)
	require.NoError(t, err)
	client, err := clientrest.HTTPClientFor(config)
	require.NoError(t, err)
	return &server{client, config.Host + "/apis/agones.dev/v1/namespaces/"}
}

// create asks the server to create a Fleet. It returns the HTTP status, and the server's answer: a
// Fleet, or a status with the reason. The answer to a created Fleet begins with warnings, if any.
func (s *server) create(t *testing.T, namespace, format string, text []byte, parameters ...string) (status int,
	answer string) {
	t.Helper()
	r, err := s.client.Post(s.address+namespace+"/fleets?"+strings.Join(parameters, "&"), format, bytes.NewReader(text))
	require.NoError(t, err)
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	if r.StatusCode != http.StatusCreated {
		var refusal metav1.Status
		require.NoError(t, json.Unmarshal(body, &refusal), string(body))
		return r.StatusCode, refusal.Message
	}
	return r.StatusCode, strings.Join(r.Header.Values("Warning"), "\n")
}

// get returns a Fleet as JSON.
func (s *server) get(t *testing.T, namespace, name string) []byte {
	r, err := s.client.Get(s.address + namespace + "/fleets/" + name)
	require.NoError(t, err)
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, r.StatusCode, string(body))
	return body
}
