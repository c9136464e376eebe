#!/bin/sh
# Builds each mod of this folder into another folder: sh build.sh DIR. Needs clang and lld.
set -eu
into=$1
cd "$(dirname "$0")"
for source in *.c; do
	clang --target=wasm32 -nostdlib -ffreestanding -fno-builtin -O2 -Wall -Wextra -Werror \
		-Wl,--no-entry -Wl,--strip-all -Wl,--allow-undefined -o "$into/${source%.c}.wasm" "$source"
done
