# cli.sh: sourced by the scripts that test the program as a user meets it.
#   check "what it proves" COMMAND...            passes when the command succeeds
#   refuses CODE TEXT "what it proves" COMMAND... passes when it exits with CODE and says one line with TEXT
#   finish NAME                                  the closing line, and the exit code
# $program is the program, $dir a scratch directory that is removed at the end.
set -u
build=$(cd "${BUILD:-build}" && pwd)
program=$build/train_gpt2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
passed=0 failed=0 skipped=0
export ASAN_OPTIONS=detect_leaks=0 # a program that ends with an error leaves its memory to the system; MPI always

count() { # COUNT_RESULT "what it proves"
    if [ "$1" -eq 0 ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "  FAILED: $2"
        sed 's/^/    /' "$dir/said" | tail -n 15
    fi
}

check() {
    what=$1
    shift
    "$@" >"$dir/said" 2>&1 </dev/null
    count $? "$what"
}

refuses() {
    code=$1 wanted=$2 what=$3
    shift 3
    "$@" >"$dir/stdout" 2>"$dir/said" </dev/null
    got=$?
    lines=$(wc -l <"$dir/said")
    [ $got -eq "$code" ] && [ "$lines" -eq 1 ] && grep -qF -- "$wanted" "$dir/said"
    ok=$?
    [ $ok -eq 0 ] || echo "(exit $got, $lines lines; wanted exit $code and one line with \"$wanted\")" >>"$dir/said"
    count $ok "$what"
}

# Whether the program can be started on several ranks: it was built with MPI, and mpirun is here.
has_ranks() { command -v mpirun >/dev/null 2>&1 && nm "$program" | grep -q ' U MPI_Init'; }

skip() { # REASON
    skipped=$((skipped + 1))
    echo "  skipped: $1"
}

# Waits until FILE has something in it; gives up after half a minute.
await() {
    tries=0
    until [ -s "$1" ]; do
        tries=$((tries + 1))
        [ $tries -le 600 ] || return 1
        sleep 0.05
    done
}

finish() {
    if [ $skipped -gt 0 ]; then
        echo "$1: $passed passed, $failed failed, $skipped skipped"
    else
        echo "$1: $passed passed, $failed failed"
    fi
    [ $failed -eq 0 ]
}

# The records of a metrics file without what depends on the clock.
timeless() { sed 's/,"seconds":[^,}]*//; s/,"tokens_per_second":[^,}]*//; /"event":"settings"/d; /"event":"end"/d' "$1"; }
