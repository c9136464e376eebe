#!/bin/sh
# emulate.sh LINE PROGRAM ARGS... runs a Go test's program by the command line of an emulator. The
# program's own name (os.Args[0]) is a script that does the same, because the system can't start
# the program itself.
line=$1 program=$2
shift 2
printf '#!/bin/sh\nexec %s -0 "$0" %s "$@"\n' "$line" "$program" > "$program.self"
chmod +x "$program.self"
exec $line -0 "$program.self" "$program" "$@"
