// Command fleet places a thousand frogpond servers on nodes, with Kubernetes' own scheduler. Some
// have the memory limit that `upfront plan fleet` prints, the sum of a plan. Others have limits as
// people guess them. It prints the number of nodes, the idle memory of the nodes, and the number of
// servers that Kubernetes would end under memory pressure. No cluster runs. README.md explains the
// figures.
//
//	fleet [-servers 1000] [-node-memory 8Gi] [-node-cpu 4] [-node-pods 110] [-cpu 10m] [-for 10s]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"text/tabwriter"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"

	"github.com/upfront-mem/upfront/budget"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "fleet:", err)
		os.Exit(1)
	}
}

type options struct {
	shape
	servers int
	cpu     string
	play    time.Duration
}

func run(args []string) error {
	var o options
	f := flag.NewFlagSet("fleet", flag.ContinueOnError)
	f.IntVar(&o.servers, "servers", 1000, "the `number` of servers to place")
	memory := f.String("node-memory", "8Gi", "the `bytes` of a node for pods")
	cpu := f.String("node-cpu", "4", "the `processors` of a node for pods")
	f.IntVar(&o.pods, "node-pods", 110, "the `number` of pods that a node takes; the default is the kubelet's")
	f.IntVar(&o.nodes, "nodes", 100, "the `number` of nodes at most")
	f.StringVar(&o.cpu, "cpu", "10m", "the `processors` of a server; by default so few that memory decides")
	f.DurationVar(&o.play, "for", 10*time.Second, "how long each measurement plays")
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil
		}
		return err
	}
	gives, err := resource.ParseQuantity(*memory)
	if err != nil {
		return fmt.Errorf("-node-memory %s: %w", *memory, err)
	}
	processors, err := resource.ParseQuantity(*cpu)
	if err != nil {
		return fmt.Errorf("-node-cpu %s: %w", *cpu, err)
	}
	o.memory, o.shape.cpu = gives.Value(), processors.MilliValue()
	folder, err := os.MkdirTemp("", "fleet")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	progress("building the tool, the server, and its twin")
	p, err := buildPrograms(folder)
	if err == nil {
		err = p.buildTwin()
	}
	if err != nil {
		return err
	}
	d, err := p.deployment(o.cpu)
	if err != nil {
		return err
	}
	m, err := o.measure(p, folder)
	if err != nil {
		return err
	}
	m.print(o.play)
	return o.place(d.Spec.Template, m)
}

// progress reports a slow step on stderr.
func progress(format string, args ...any) { fmt.Fprintf(os.Stderr, "fleet: "+format+"\n", args...) }

// place places each offer's servers, and prints the outcome.
func (o options) place(template v1.PodTemplateSpec, m measured) error {
	progress("the scheduler places %d servers for each row", o.servers)
	fmt.Printf("\n%d servers, placed by Kubernetes' scheduler (NodeResourcesFit, MostAllocated) on nodes of %s MiB, "+
		"%g CPU and %d pods.\nEach asks for %s CPU, so that memory decides. Sizes are MiB; idle is GiB.\n\n",
		o.servers, mib(uint64(o.memory)), float64(o.shape.cpu)/1000, o.pods, o.cpu)
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "request\tlimit\tGo limit\ta node\tnodes\tidle\t")
	for _, m := range moments {
		fmt.Fprint(t, m.name, "\t")
	}
	fmt.Fprintln(t, "  server's memory")
	sum := template.Spec.Containers[0].Resources.Limits.Memory().Value()
	unplaced := 0
	for _, offer := range m.offers(uint64(sum)) {
		packed, err := pack(context.Background(), o.shape, offer.pod(template), o.servers, config.MostAllocated)
		if err != nil {
			return err
		}
		out := offer.outcome(o.shape, packed)
		unplaced += out.unplaced
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%d\t%.1f\t", mib(offer.request), mib(offer.limit), mib(offer.goLimit), out.most,
			out.nodes, float64(out.idle)/float64(budget.GiB))
		for _, h := range out.hits {
			fmt.Fprintf(t, "%d + %d\t", h.limited, h.evicted)
		}
		fmt.Fprintln(t, "  "+offer.name)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Println(says)
	if unplaced > 0 {
		return fmt.Errorf("%d servers found no node; raise -nodes", unplaced)
	}
	return nil
}

const says = `
idle: memory of the nodes in use that servers leave unused, on a day when a third of the servers each plays 4, 16 and 64 rooms.
The rest are servers that end: by their own limit + by eviction. evening: all play 64 rooms. worst: 64 rooms with the
largest map, each tenth server or all; upfront's then count as if they had all of their sum.
No cluster ran: the scheduler is the real one, pressure is computed by the kubelet's documented rule (README.md).`

func (m measured) print(play time.Duration) {
	fmt.Printf("Resident, MiB: mean of %v, highest since the start. 16 bots in each room.\n\n", play/2)
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "4 rooms\t16 rooms\t64 rooms\t64 of %s\t  server\n", m.largest)
	for _, row := range []struct {
		uses [occupations]usage
		name string
	}{{m.ours, "upfront"}, {m.twin, "Go heap, with the Go limit below"}} {
		for _, u := range row.uses {
			fmt.Fprintf(t, "%s, %s\t", mib(u.mean), mib(u.peak))
		}
		fmt.Fprintln(t, "  "+row.name)
	}
	t.Flush()
}

func mib(bytes uint64) string {
	if bytes == 0 {
		return ""
	}
	return fmt.Sprint((bytes + 1<<19) >> 20)
}
