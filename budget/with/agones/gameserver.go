package agones

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// GameServer is a game server as the sidecar knows it: the fields that the SDK returns of the
// object in Kubernetes.
type GameServer struct {
	Name, Namespace, UID string
	Created              int64 // seconds since 1970
	Labels, Annotations  map[string]string
	Health               HealthSpec
	State                string // Ready, Allocated, Reserved and so on
	Address              string
	Ports                []Port
	Counters             map[string]Counter // empty without the feature CountsAndLists, for example
}

// HealthSpec is the section of a fleet's spec about calls of Health. A period without a call is a
// failure. After FailureThreshold failures in a row Agones replaces the server.
type HealthSpec struct {
	Disabled             bool
	Period, InitialDelay time.Duration
	FailureThreshold     int
}

// Port is a port of a node that leads to the server.
type Port struct {
	Name string `json:"name"`
	Port int    `json:"port"`
}

// gameServerJSON is a game server in the protocol's spelling. Numbers of 64 bits are strings there;
// a [json.Number] reads both.
type gameServerJSON struct {
	Meta *struct {
		Name        string            `json:"name"`
		Namespace   string            `json:"namespace"`
		UID         string            `json:"uid"`
		Created     json.Number       `json:"creation_timestamp"`
		Labels      map[string]string `json:"labels"`
		Annotations map[string]string `json:"annotations"`
	} `json:"object_meta"`
	Spec struct {
		Health struct {
			Disabled         bool  `json:"disabled"`
			Period           int32 `json:"period_seconds"`
			FailureThreshold int32 `json:"failure_threshold"`
			InitialDelay     int32 `json:"initial_delay_seconds"`
		} `json:"health"`
	} `json:"spec"`
	Status *struct {
		State    string                 `json:"state"`
		Address  string                 `json:"address"`
		Ports    []Port                 `json:"ports"`
		Counters map[string]counterJSON `json:"counters"`
	} `json:"status"`
}

func (j *gameServerJSON) read() (g GameServer, err error) {
	if j.Meta == nil || j.Status == nil {
		return g, errors.New("a game server without object_meta or status")
	}
	m, h, s := j.Meta, j.Spec.Health, j.Status
	g = GameServer{Name: m.Name, Namespace: m.Namespace, UID: m.UID, Labels: m.Labels, Annotations: m.Annotations,
		Health: HealthSpec{Disabled: h.Disabled, FailureThreshold: int(h.FailureThreshold),
			Period: time.Duration(h.Period) * time.Second, InitialDelay: time.Duration(h.InitialDelay) * time.Second},
		State: s.State, Address: s.Address, Ports: s.Ports, Counters: make(map[string]Counter, len(s.Counters))}
	if g.Created, err = number("creation_timestamp", m.Created); err != nil {
		return GameServer{}, err
	}
	for name, counter := range s.Counters {
		if g.Counters[name], err = counter.read(); err != nil {
			return GameServer{}, err
		}
	}
	return g, nil
}

type counterJSON struct {
	Count    json.Number `json:"count"`
	Capacity json.Number `json:"capacity"`
}

func (j counterJSON) read() (c Counter, err error) {
	if c.Count, err = number("count", j.Count); err == nil {
		c.Capacity, err = number("capacity", j.Capacity)
	}
	return c, err
}

// number returns a number of 64 bits. The protocol may leave out a 0.
func number(key string, text json.Number) (int64, error) {
	if text == "" {
		return 0, nil
	}
	n, err := text.Int64()
	if err != nil {
		return 0, fmt.Errorf("%s is %s: want a whole number", key, start([]byte(text)))
	}
	return n, nil
}
