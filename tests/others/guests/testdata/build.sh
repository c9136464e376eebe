#!/bin/sh
# Builds the guest of this folder into another folder: sh build.sh DIR. Needs clang and lld.
set -eu
into=$1
cd "$(dirname "$0")"
clang --target=wasm32 -nostdlib -ffreestanding -fno-builtin -O2 -Wall -Wextra -Werror \
	-Wl,--no-entry -Wl,--strip-all -o "$into/guest.wasm" guest.c
