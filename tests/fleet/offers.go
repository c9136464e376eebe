package main

import (
	"fmt"
	"os/exec"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"
)

// deployment returns the tool's output, decoded strictly: an unknown key is an error.
func (p programs) deployment(cpu string) (d appsv1.Deployment, err error) {
	text, err := output(exec.Command(p.upfront, "plan", "fleet", p.plan, "--only", "deployment", "--cpu", cpu))
	if err != nil {
		return d, err
	}
	return d, yaml.UnmarshalStrict(text, &d)
}

// pod returns the tool's pod with the memory of the offer.
func (o offer) pod(template v1.PodTemplateSpec) v1.PodTemplateSpec {
	template = *template.DeepCopy()
	r := &template.Spec.Containers[0].Resources
	r.Requests[v1.ResourceMemory] = *resource.NewQuantity(int64(o.request), resource.BinarySI)
	r.Limits[v1.ResourceMemory] = *resource.NewQuantity(int64(o.limit), resource.BinarySI)
	return template
}

// measured is the memory of both servers at work. The twin has the Go limit of guess.
type measured struct {
	largest    string // map
	ours, twin [occupations]usage
	tested     usage // the full twin, before it has a limit
}

// guess returns limits as people guess them: 1.5 times the peak of a test, and nine tenths of that
// for Go.
func guess(tested usage) (limit, goLimit uint64) {
	limit = tested.peak + tested.peak/2
	return limit, limit / 10 * 9
}

func (o options) measure(p programs, folder string) (m measured, err error) {
	progress("looking for the largest map")
	if m.largest, err = p.largestMap(folder); err != nil {
		return m, err
	}
	loads := [occupations]load{{4, "all"}, {16, "all"}, {roomsMost, "all"}, {roomsMost, m.largest}}
	progress("upfront's server plays %d times for %v", len(loads), o.play)
	for i, l := range loads {
		if m.ours[i], err = p.measure(p.pond, nil, l, o.play); err != nil {
			return m, err
		}
	}
	progress("its twin on the Go heap plays %d times", 1+len(loads))
	twin := []string{"-plan", p.twinPlan}
	if m.tested, err = p.measure(p.twin, []string{"GOGC=100"}, loads[full], o.play, twin...); err != nil {
		return m, err
	}
	_, goLimit := guess(m.tested)
	environment := []string{"GOGC=100", fmt.Sprint("GOMEMLIMIT=", goLimit)}
	for i, l := range loads {
		if m.twin[i], err = p.measure(p.twin, environment, l, o.play, twin...); err != nil {
			return m, err
		}
	}
	return m, nil
}

// offers returns the ways to set a server's limits. sum is the tool's sum for upfront's server.
func (m measured) offers(sum uint64) []offer {
	// At worst it uses all of its sum, though no measurement came to that.
	ours := m.ours
	ours[worst] = usage{sum, sum}
	peak := uint64(0)
	for _, u := range m.ours {
		peak = max(peak, u.peak)
	}
	guessed, _ := guess(usage{peak: peak})
	limit, goLimit := guess(m.tested)
	careful, carefulGo := guess(m.twin[worst])
	typical := (m.twin[few].mean + m.twin[some].mean + m.twin[full].mean) / 3
	return []offer{
		{"upfront: plan + Go share + reserve", sum, sum, 0, ours},
		{"upfront: its peak + 50 %", guessed, guessed, 0, ours},
		{"Go heap: its peak + 50 %, 90 % of it for Go", limit, limit, goLimit, m.twin},
		{"Go heap: its peak with the largest map + 50 %, 90 % of it for Go", careful, careful, carefulGo, m.twin},
		{"Go heap: its peak + 50 %, 90 % of it for Go; requests its mean", typical, limit, goLimit, m.twin},
	}
}
