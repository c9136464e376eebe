# A target is a few lines: how Go and C build for it, and how its output runs here. `make cross` builds each, `make cross-test` runs it.

TARGETS = linux-arm64

linux-arm64.env = GOOS=linux GOARCH=arm64 CGO_ENABLED=1 CC=aarch64-linux-gnu-gcc
linux-arm64.cc  = aarch64-linux-gnu-gcc
linux-arm64.apt = gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static
linux-arm64.run = qemu-aarch64-static -L /usr/aarch64-linux-gnu

# What is compiled here and runs elsewhere: `make cross` has a recipe for each.
COMPILED = windows-amd64 darwin-arm64

windows-amd64.env = GOOS=windows GOARCH=amd64 CGO_ENABLED=1 CC=x86_64-w64-mingw32-gcc
windows-amd64.cc  = x86_64-w64-mingw32-gcc
windows-amd64.apt = gcc-mingw-w64-x86-64-win32

# Without its SDK: the core against a string.h of our own, and the Go package that needs no C.
darwin-arm64.env = GOOS=darwin GOARCH=arm64 CGO_ENABLED=0
darwin-arm64.cc  = clang
darwin-arm64.c   = --target=arm64-apple-macos11 -ffreestanding -Icross/darwin
darwin-arm64.apt = clang
