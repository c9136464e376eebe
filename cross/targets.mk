# A target is a few lines: how Go and C build for it, and how its output runs here. `make cross` builds each, `make cross-test` runs it.

TARGETS = linux-arm64

linux-arm64.env = GOOS=linux GOARCH=arm64 CGO_ENABLED=1 CC=aarch64-linux-gnu-gcc
linux-arm64.cc  = aarch64-linux-gnu-gcc
linux-arm64.apt = gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static
linux-arm64.run = qemu-aarch64-static -L /usr/aarch64-linux-gnu
