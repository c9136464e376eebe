//go:build !linux

package udp

import (
	"errors"
	"net"

	"github.com/upfront-mem/upfront/scope"
)

// The server runs on Linux. This file lets the program compile elsewhere.

const familyIPv4, familyIPv6 = 2, 10

type batch struct{}

func (*batch) make(scope.Scope, *Batch) {}
func (*batch) received(int) int         { return 0 }
func (*batch) sends(_ *Batch, _, _ int) {}

// Socket is a UDP socket.
type Socket struct{}

// Listen returns errors.ErrUnsupported.
func Listen(string, int) (*Socket, error) { return nil, errors.ErrUnsupported }

// Listen returns no Socket, so these methods aren't called.
func (*Socket) Granted() int                     { return 0 }
func (*Socket) Addr() net.Addr                   { return nil }
func (*Socket) Interrupt() error                 { return errors.ErrUnsupported }
func (*Socket) Resume() error                    { return errors.ErrUnsupported }
func (*Socket) Close() error                     { return errors.ErrUnsupported }
func (*Socket) Receive(*Batch) (int, error)      { return 0, errors.ErrUnsupported }
func (*Socket) Send(*Batch) error                { return errors.ErrUnsupported }
func (*Socket) Pass(*net.UnixConn, string) error { return errors.ErrUnsupported }
func (*Socket) Unsent() uint64                   { return 0 }
func (*Socket) Dropped() uint64                  { return 0 }

// Receive returns errors.ErrUnsupported.
func Receive(*net.UnixConn, int) (*Socket, error) { return nil, errors.ErrUnsupported }
