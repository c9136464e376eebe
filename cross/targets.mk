# A target is a few lines: how Go and C build for it, and how its output runs here. `make cross` builds each, `make cross-test` runs it.
#
#   env, flags   of the go command          suites   which tests run, by the last element of their package
#   cc, cflags   the C compiler             paged    which of them run again with larger pages, of 16 and 64 KiB
#   apt          what has cc and run        run      what its output runs under; $1 is the size of a page, if it matters
#                                           but      tests that are left out

TARGETS = linux-arm64 linux-arm64-static linux-amd64 linux-arm

# A build of a target that is only for its tests.
CHECKED = linux-arm64-asan

HERE     := $(shell uname -m)
compiler  = $(if $(filter $1,$(HERE)),gcc,$1-linux-gnu-gcc)
emulator  = $(if $(filter $1,$(if $2,,$(HERE))),,qemu-$1-static $(if $2,-p $2) -L /usr/$1-linux-gnu)

linux-arm64.env    = GOOS=linux GOARCH=arm64 CGO_ENABLED=1 CC=$(linux-arm64.cc)
linux-arm64.cc     = $(call compiler,aarch64)
linux-arm64.apt    = gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static
linux-arm64.run    = $(call emulator,aarch64,$1)
linux-arm64.suites = $(SUITES)
linux-arm64.paged  = platform budget

# No library of the device is used: it may have an old libc, another one, or none.
linux-arm64-static.env    = $(linux-arm64.env)
linux-arm64-static.flags  = -tags osusergo,netgo -ldflags '-linkmode external -extldflags -static'
linux-arm64-static.cc     = $(linux-arm64.cc)
linux-arm64-static.cflags = -static
linux-arm64-static.apt    = $(linux-arm64.apt)
linux-arm64-static.run    = $(linux-arm64.run)
linux-arm64-static.suites = platform frogpond doom game
linux-arm64-static.paged  = platform frogpond

linux-amd64.env    = GOOS=linux GOARCH=amd64 CGO_ENABLED=1 CC=$(linux-amd64.cc)
linux-amd64.cc     = $(call compiler,x86_64)
linux-amd64.apt    = $(if $(filter x86_64,$(HERE)),gcc,gcc-x86-64-linux-gnu libc6-dev-amd64-cross qemu-user-static)
linux-amd64.run    = $(call emulator,x86_64)
linux-amd64.suites = platform frogpond doom game

linux-arm.env    = GOOS=linux GOARCH=arm GOARM=7 CGO_ENABLED=1 CC=$(linux-arm.cc)
linux-arm.cc     = arm-linux-gnueabihf-gcc
linux-arm.apt    = gcc-arm-linux-gnueabihf libc6-dev-armhf-cross qemu-user-static
linux-arm.run    = qemu-arm-static -L /usr/arm-linux-gnueabihf
linux-arm.suites = $(SUITES)

# The go command takes a compiler for -asan whose --version begins with gcc: a link of that name has it so. There is no leak check
# under an emulator, which can't be traced, and none of its shadow for the addresses that package budget's tests read (SafeBase). Of frogpond the built-in maps are played.
linux-arm64-asan.env    = GOOS=linux GOARCH=arm64 CGO_ENABLED=1 CC=$(CURDIR)/build/linux-arm64-asan/gcc
linux-arm64-asan.flags  = -asan
linux-arm64-asan.cc     = $(linux-arm64.cc)
linux-arm64-asan.cflags = -fsanitize=address
linux-arm64-asan.apt    = $(linux-arm64.apt)
linux-arm64-asan.run    = env ASAN_OPTIONS=detect_leaks=0 $(linux-arm64.run)
linux-arm64-asan.suites = arena scope frogpond doom game
linux-arm64-asan.but    = ^TestHashes$$/^freedoom$$

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
