#!/bin/sh
# Compares two games byte by byte in their saves: one is played here at once, the other here to tick
# 50, there to tick 100, and here to the end.
#
# save.sh HERE THERE DIR WAD MAP...: HERE is frogpond, THERE the command that runs it as another
# machine does; the files are in DIR.
set -eu
here=$1 there=$2 dir=$3 wad=$4
shift 4
mkdir -p "$dir"
for map; do
  part() { # COMMAND ARGUMENTS...
    command=$1
    shift
    $command -wad "$wad" -maps "$map" "$@" > "$dir/out"
  }
  part "$here" -ticks 150 -demo "$dir/inputs" -save "$dir/straight"
  part "$here" -playdemo "$dir/inputs" -ticks 50 -save "$dir/at50"
  part "$there" -playdemo "$dir/inputs" -load "$dir/at50" -ticks 100 -save "$dir/at100"
  part "$here" -playdemo "$dir/inputs" -load "$dir/at100" -ticks 150 -save "$dir/end"
  cmp "$dir/straight" "$dir/end" || { echo "$map of $wad: saved, and played on elsewhere, it differs"; exit 1; }
done
