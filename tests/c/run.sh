#!/bin/sh
# run.sh BUILD_DIR [coverage|soak|cross] - tests the C core without Go: with gcc and g++, their
# sanitizers, and branch coverage. It prints a line for each step and ends at the first failure.
#
# `coverage` runs only that step, and prints the share of branches. `soak` runs the rest: clang,
# clang++ and valgrind. `cross` only builds with CC and CFLAGS, and runs the result under RUN, all
# from the environment.
#
# A step without its compiler or checker says so, and names the Debian package; with REQUIRE_ALL=1
# it fails. Steps run in parallel.
set -eu

[ $# -ge 1 ] || { echo "usage: $0 BUILD_DIR [coverage|soak|cross]" >&2; exit 2; }
only=${2:-}
mkdir -p "$1"
build=$(cd "$1" && pwd)
cd "$(dirname "$0")/../.."
core=$(ls "$PWD"/arena_c/*.c)
tests=$(ls "$PWD"/tests/c/*.c | grep -v /level.c)
warnings="-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror"
c11="-std=c11 $warnings -I$PWD/arena_c -g"
sanitize="-fsanitize=address,undefined -fno-sanitize-recover=all"

for test in $tests; do
    name=$(basename "$test" .c)
    [ "$name" = main ] || grep -q "test_$name();" tests/c/main.c ||
        { echo "tests/c/main.c doesn't run test_$name"; exit 1; }
done

# nothing.c calls each function that isn't inline with null, except marks and the checked build's.
for header in $(ls arena_c/*.h | grep -v /checked.h); do
    for function in $(sed -nE '/^static|^#|^typedef/d; s/^[a-z].*[ *](upfront_[a-z0-9_]+)\(.*/\1/p' "$header" |
        grep -vE '^upfront_(mark|note)_|_(natural|dirt|dirt_in|rests)$'); do
        grep -q "[^a-z]$function(" tests/c/nothing.c ||
            { echo "tests/c/nothing.c doesn't call $function of $header"; exit 1; }
    done
done

# sizes.c calls each of them that takes a number, except words that only the owner of an arena has.
number='[(,] *(uint64_t|size_t|uint32_t) [a-z]'
for header in $(ls arena_c/*.h | grep -v /checked.h); do
    for function in $(tr '\n' ' ' <"$header" | tr ';' '\n' |
        sed -nE "/(static|typedef|#)[^()]*upfront_/d; /$number/s/.*[ *](upfront_[a-z0-9_]+)\(.*/\1/p" |
        grep -vE '^upfront_(mark|note_made|note_asked|row_init)|_(natural|dirt|dirt_in|rests|cut|cut_far|look)$'); do
        grep -q "[^a-z]$function[(,)]" tests/c/sizes.c ||
            { echo "tests/c/sizes.c doesn't call $function of $header"; exit 1; }
    done
done

say() { printf '%-34s %s\n' "$1" "$2"; }

# have TOOL PACKAGE reports a missing tool in step.Unproven's words, which tests/run collects.
have() {
    command -v "$1" >/dev/null && return
    echo "not proven here: $1 is missing; Debian's package $2 brings it"
    [ -z "${REQUIRE_ALL:-}" ] || exit 1
    return 1
}

# run NAME COMMAND... shows the command's output only if it fails.
run() {
    what=$1
    shift
    "$@" >"$build/$what.out" 2>&1 || { cat "$build/$what.out"; say "$what" FAILED; exit 1; }
}

# check NAME COMPILER CORE_O TESTS_O FLAGS... builds and runs the tests and the level program. Tests
# optimized like the core would take four times as long under sanitizers.
check() {
    name=$1 cc=$2 core_o=$3 tests_o=$4
    shift 4
    rm -rf "$build/$name"
    mkdir -p "$build/$name/core" "$build/$name/tests"
    # shellcheck disable=SC2086
    (cd "$build/$name/core" && $cc $c11 $core_o "$@" -c $core)
    # shellcheck disable=SC2086
    (cd "$build/$name/tests" && $cc $c11 $tests_o "$@" -c $tests)
    # shellcheck disable=SC2086
    $cc "$@" "$build/$name"/core/*.o "$build/$name"/tests/*.o -o "$build/core-$name"
    # shellcheck disable=SC2086
    $cc $c11 $core_o "$@" "$build/$name"/core/*.o tests/c/level.c -o "$build/level-$name"
    # shellcheck disable=SC2086
    run "core-$name" ${RUN:-} "$build/core-$name"
    # shellcheck disable=SC2086
    run "level-$name" ${RUN:-} "$build/level-$name"
    say "$name" ok
}

coverage() {
    have gcov gcc || return 0
    rm -rf "$build/coverage"
    mkdir "$build/coverage"
    # In one translation unit each inline function exists once, and all tests count its branches.
    printf '#include "%s"\n' $core $tests >"$build/coverage/core.c"
    gcc -std=c11 -O0 --coverage -D_DEFAULT_SOURCE -I"$PWD/arena_c" -o "$build/coverage/core" "$build/coverage/core.c"
    "$build/coverage/core" >/dev/null
    (cd "$build/coverage" && gcov -b -c -- *.gcda) >"$build/coverage/summary"
    # Of each file of arena_c: "Taken at least once:97.50% of 40". The sum must miss none.
    awk '
        /^File / { core = /arena_c\// }
        /^$/ { core = 0 } # the last figure is of all files
        core && /^Lines executed:/ { split($0, l, /[:% ]+/); lines += l[5]; hit_lines += l[3] * l[5] / 100 }
        core && /^Taken at least once:/ { split($0, b, /[:% ]+/); branches += b[7]; taken += b[5] * b[7] / 100 }
        END {
            printf "coverage: %.0f of %d lines, %.0f of %d branches taken: %.2f %%\n",
                hit_lines, lines, taken, branches, 100 * taken / branches
            exit branches == 0 || taken < branches - 0.01
        }' "$build/coverage/summary" || { echo "see $build/coverage/*.gcov: lines with 'taken 0'"; exit 1; }
}

case $only in
coverage)
    coverage
    exit
    ;;
cross)
    # shellcheck disable=SC2086
    check O2 "$CC" -O2 -O2 ${CFLAGS:-}
    exit
    ;;
esac

# plain and checkers are the steps of a C compiler.
plain() {
    check "$1-O2" "$1" -O2 -O2
    check "$1-no-int128" "$1" -O1 -O0 -U__SIZEOF_INT128__
    # Without checkers, the core calls only mem* of libc.
    outside=$(nm -u "$build/$1-O2"/core/*.o |
        awk '$1 == "U" && $2 !~ /^(upfront_|mem|_GLOBAL_OFFSET_TABLE_$)/ { print $2 }' | sort -u)
    [ -z "$outside" ] || { echo "the core calls: $outside"; exit 1; }
    say "nm -u, $1" "only mem*"
    named "$1-O2"
}

# named NAME checks that names.h has every name that the linker sees of this build of the core.
named() {
    lacks=$(nm -g --defined-only "$build/$1"/core/*.o |
        awk 'NF == 3 { print "#define " $3 " UPFRONT_NAME(" substr($3, 9) ")" }' | sort -u |
        grep -vxFf arena_c/names.h || true)
    [ -z "$lacks" ] || { echo "arena_c/names.h lacks: $lacks"; exit 1; }
}

checkers() {
    check "$1-O0-checked" "$1" -O0 -O0 -DUPFRONT_CHECKED
    named "$1-O0-checked"
    # shellcheck disable=SC2086
    check "$1-asan-ubsan" "$1" -O1 -O0 $sanitize
}

plus() {
    printf '#include "callbacks.h"\nUPFRONT_CALLBACKS(pond, heap)\nint main() { return upfront_is_align(3); }\n' \
        >"$build/header-$1.cpp"
    # shellcheck disable=SC2086
    $1 -std=c++17 $warnings -Iarena_c "$build/header-$1.cpp" -o "$build/header-$1"
    "$build/header-$1"
    # the core's sources compile as C++, too
    for source in $core; do
        # shellcheck disable=SC2086
        $1 -x c++ -std=c++17 $warnings -Iarena_c -c "$source" -o "$build/$1.o"
    done
    say "$1, C++17" ok
}

# family C C++ PACKAGE runs the steps of a family of compilers.
family() {
    if have "$1" "$1"; then
        plain "$1" & plain=$!
        checkers "$1" & checkers=$!
    fi
    if have "$2" "$3"; then
        plus "$2"
    fi
    wait ${plain:-}
    wait ${checkers:-}
}

if [ "$only" = soak ]; then
    family clang clang++ clang
    if have valgrind valgrind; then
        check gcc-O2 gcc -O2 -O2
        run valgrind valgrind -q --error-exitcode=1 --leak-check=full "$build/core-gcc-O2"
        run valgrind-level valgrind -q --error-exitcode=1 --leak-check=full "$build/level-gcc-O2"
        say "under valgrind" ok
    fi
    exit
fi

family gcc g++ g++
coverage
