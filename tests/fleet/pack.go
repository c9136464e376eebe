package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"k8s.io/kubernetes/pkg/scheduler/profile"
)

const namespace = "default"

// shape is the size of a node's part for pods, and the number of nodes.
type shape struct {
	memory, cpu int64 // bytes, thousandths of a processor
	pods, nodes int
}

func (s shape) node(number int) *v1.Node {
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%03d", number)}}
	n.Labels = map[string]string{v1.LabelHostname: n.Name}
	n.Status.Allocatable = v1.ResourceList{
		v1.ResourceMemory: *resource.NewQuantity(s.memory, resource.BinarySI),
		v1.ResourceCPU:    *resource.NewMilliQuantity(s.cpu, resource.DecimalSI),
		v1.ResourcePods:   *resource.NewQuantity(int64(s.pods), resource.DecimalSI),
	}
	n.Status.Capacity = n.Status.Allocatable
	n.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}}
	return n
}

// packing is the place of each pod, by its number.
type packing struct {
	nodes []string // "": none
	why   []string // why it has none
}

// used returns the pods of each node that has some.
func (p packing) used() map[string][]int {
	used := map[string][]int{}
	for pod, node := range p.nodes {
		if node != "" {
			used[node] = append(used[node], pod)
		}
	}
	return used
}

// pack has Kubernetes' scheduler place count pods of a kind, one after the other. It is the real
// scheduler, with its usual plugins and a strategy for scoring resources. The API server is
// client-go's fake, which binds pods as the scheduler decides.
func pack(ctx context.Context, s shape, pod v1.PodTemplateSpec, count int,
	strategy config.ScoringStrategyType) (p packing, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	klog.SetLogger(logr.Discard()) // pack returns unschedulable pods itself
	cluster := fake.NewClientset()
	for i := range s.nodes {
		if err := cluster.Tracker().Add(s.node(i)); err != nil {
			return p, err
		}
	}
	answers := make(chan answer, 1)
	answerBindings(cluster, answers)

	c, err := latest.Default()
	if err != nil {
		return p, err
	}
	if err := score(c, strategy); err != nil {
		return p, err
	}
	informers := scheduler.NewInformerFactory(cluster, 0, nil)
	every := int32(100) // percent of the nodes are scored, so that the groups of pods repeat
	run, err := scheduler.New(ctx, cluster, informers, nil, noEvents, scheduler.WithProfiles(c.Profiles...),
		scheduler.WithPercentageOfNodesToScore(&every))
	if err != nil {
		return p, err
	}
	informers.Start(ctx.Done())
	informers.WaitForCacheSync(ctx.Done())
	if err := run.WaitForHandlersSync(ctx); err != nil {
		return p, err
	}
	ended := make(chan struct{})
	go func() {
		run.Run(ctx)
		close(ended)
	}()
	defer func() {
		cancel()
		<-ended
	}()

	for i := range count {
		name := fmt.Sprintf("server-%04d", i)
		one := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: pod.Labels, Annotations: pod.Annotations},
			Spec: pod.Spec}
		one.UID = types.UID(name)
		one.Spec.SchedulerName = v1.DefaultSchedulerName // as the API server does
		if _, err := cluster.CoreV1().Pods(namespace).Create(ctx, one, metav1.CreateOptions{}); err != nil {
			return p, err
		}
		select {
		case a := <-answers:
			if a.pod != name {
				return p, fmt.Errorf("%s was placed, not %s", a.pod, name)
			}
			p.nodes, p.why = append(p.nodes, a.node), append(p.why, a.why)
		case <-ctx.Done():
			return p, fmt.Errorf("%s was not placed: %w", name, ctx.Err())
		}
	}
	return p, nil
}

// answer is the scheduler's decision about a pod: its node, or why it has none.
type answer struct{ pod, node, why string }

// answerBindings binds pods as an API server does, and sends an answer for each pod.
func answerBindings(cluster *fake.Clientset, answers chan<- answer) {
	pods := v1.SchemeGroupVersion.WithResource("pods")
	cluster.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if action.GetSubresource() != "binding" {
			return false, nil, nil
		}
		binding := action.(clienttesting.CreateAction).GetObject().(*v1.Binding)
		object, err := cluster.Tracker().Get(pods, namespace, binding.Name)
		if err != nil {
			return true, nil, err
		}
		pod := object.(*v1.Pod).DeepCopy()
		pod.Spec.NodeName = binding.Target.Name
		if err = cluster.Tracker().Update(pods, pod, namespace); err == nil {
			answers <- answer{pod: pod.Name, node: pod.Spec.NodeName}
		}
		return true, binding, err
	})
	// A pod without a node gets a condition.
	told := map[string]bool{}
	cluster.PrependReactor("patch", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		patch := action.(clienttesting.PatchAction)
		why, ok := unschedulable(patch.GetPatch())
		if ok && !told[patch.GetName()] {
			told[patch.GetName()] = true
			answers <- answer{pod: patch.GetName(), why: why}
		}
		return false, nil, nil
	})
}

// score sets the strategy of the plugin NodeResourcesFit of the usual profile.
func score(c *config.KubeSchedulerConfiguration, strategy config.ScoringStrategyType) error {
	for _, p := range c.Profiles[0].PluginConfig {
		if args, ok := p.Args.(*config.NodeResourcesFitArgs); ok && p.Name == names.NodeResourcesFit {
			args.ScoringStrategy.Type = strategy
			return nil
		}
	}
	return errors.New("the profile has no NodeResourcesFit")
}

// unschedulable reads a patch of a pod's status. If the pod has no node, it returns the reason.
func unschedulable(patch []byte) (why string, ok bool) {
	var pod v1.Pod
	if json.Unmarshal(patch, &pod) != nil {
		return "", false
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == v1.PodScheduled && c.Status == v1.ConditionFalse {
			return c.Message, true
		}
	}
	return "", false
}

var noEvents profile.RecorderFactory = func(string) events.EventRecorderLogger { return &events.FakeRecorder{} }
