#!/bin/sh
# cli.sh: sourced by the scripts that test the program as a user runs it. Nothing here passes because a
# program died, said nothing or hung: test/cli_selftest.sh runs every script against such programs.
#
#   check "what it proves" COMMAND...            passes when the command succeeds. If the command is the program
#                                                itself, it must also have said something
#   check "... what else" COMMAND...             "..." continues the check before it: where that failed, this
#                                                fails too. Use it for what a dead program does as well
#                                                ("... and makes no file" test ! -e FILE)
#   refuses CODE TEXT "what it proves" COMMAND... passes when it exits with CODE and says one line with TEXT
#   skip REASON                                  counts a skip, and says why
#   finish NAME                                  the closing line, and the exit code
#
# COMMAND is often one of these, all of which fail on an exit code, on empty values and on missing files:
#   says TEXT COMMAND...       runs the command; its output has the fixed string TEXT
#   prints REGEX COMMAND...    ...; a line of its output matches the extended regular expression
#   output FILE COMMAND...     runs the command; its output, which must not be empty, goes to FILE
#   speaks COMMAND...          likewise, but the output is passed on
#   same GOT WANTED            two values, neither empty
#   differ GOT OTHER           two values, neither empty, that are not the same
#   same_files A B...          files that are there, not empty, and alike byte for byte
#   other_files A B            files that are there, not empty, and not alike
#   near GOT WANTED RELATIVE   numbers; WANTED may be a sum like "2 * 3.5 / 3"
#   less A B                   numbers, likewise
#   not COMMAND...             the command runs to its end and exits with 1 (not with 127 or by a signal)
# A pipeline in `sh -c` loses the exit code of all but its last command: write its first output to a file
# with `output`, then look at the file.
#
# A check that does not end within CLI_LIMIT seconds (300) ends the script, which says which it was.
# $program is the program, $dir a scratch directory that is removed at the end.
set -u
dir=$(mktemp -d) || exit 1
# A preloaded library and the words of mpirun's agent end at a blank: from a path with one, a link leads here.
case $PWD in *[[:space:]]*) ln -s "$PWD" "$dir/project" && cd "$dir/project" || exit 1 ;; esac
build=$(cd "${BUILD:-build}" && pwd) || exit 1
program=$build/train_gpt2
passed=0 failed=0 skipped=0 before=0
export ASAN_OPTIONS=detect_leaks=0 # a program that ends with an error leaves its memory to the system; MPI always

# ---- the time limit

exec 3>&1 # for what is said inside a command whose output goes elsewhere
limit=${CLI_LIMIT:-300} started="the script's first lines"

# The processes below PROCESS, but for the guard and what it started.
below() {
    local child
    for child in $(ps -o pid= --ppid "$1"); do
        [ "$child" = "$guard" ] && continue
        below "$child"
        echo "$child"
    done
}

# Ends the script: its limit is over.
give_up() {
    trap '' TERM
    # shellcheck disable=SC2046 # a list of process ids
    kill -KILL $(below $$) 2>/dev/null
    failed=$((failed + 1))
    {
        echo "  FAILED: $started: did not end within $limit seconds; the rest was not tried"
        closing_line "$(basename "$0" .sh)"
    } >&3
    exit 1
}
leave() {
    kill "$guard" 2>/dev/null
    [ ! -d "$dir/small" ] || umount "$dir/small" 2>/dev/null # a small disk, where a script mounted one
    rm -rf "$dir"
}

# The guard looks each second whether the script has come to another check.
: >"$dir/now"
(
    exec >/dev/null 2>&1 3>&-
    idle=0 last=
    while sleep 1 && kill -0 $$; do
        now=
        read -r now <"$dir/now"
        idle=$((idle + 1))
        [ "$now" = "$last" ] || idle=0
        last=$now
        [ "$idle" -lt "$limit" ] && continue
        guard=$(exec sh -c 'echo $PPID')
        kill -TERM $$
        # shellcheck disable=SC2046 # a list of process ids
        kill -KILL $(below $$) # the shell sees the signal when its child has ended
        idle=0
    done
) &
guard=$!
trap leave EXIT
trap give_up TERM

# Notes what the script is at: for the guard, and for run.sh in $TEST_NOW.
at() {
    started=$1
    echo "$passed $failed $1" >"$dir/now"
    [ -z "${TEST_NOW:-}" ] || echo "$1" >"$TEST_NOW"
}

# ---- checks

count() { # COUNT_RESULT "what it proves"
    case $2 in
    ...*) [ $before -eq 0 ] || set -- "$before" "$2 (its check before failed)" ;;
    esac
    before=$1
    if [ "$1" -eq 0 ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "  FAILED: $2"
        sed 's/^/    /' "$dir/said" | tail -n 15
        [ -z "${CLI_FIRST:-}" ] || { finish "$(basename "$0" .sh)"; exit 1; } # one is enough
    fi
    at "after: $2"
}

check() {
    local what=$1
    shift
    at "$what"
    if [ "$1" = "$program" ]; then
        "$@" >"$dir/said" 2>&1 </dev/null && [ -s "$dir/said" ]
    else
        "$@" >"$dir/said" 2>&1 </dev/null
    fi
    count $? "$what"
}

refuses() {
    local code=$1 wanted=$2 what=$3 got lines ok
    shift 3
    at "$what"
    "$@" >"$dir/stdout" 2>"$dir/said" </dev/null
    got=$?
    lines=$(wc -l <"$dir/said")
    [ $got -eq "$code" ] && [ "$lines" -eq 1 ] && grep -qF -- "$wanted" "$dir/said"
    ok=$?
    [ $ok -eq 0 ] || echo "(exit $got, $lines lines; wanted exit $code and one line with \"$wanted\")" >>"$dir/said"
    count $ok "$what"
}

output() { # FILE COMMAND...
    local into=$1
    shift
    "$@" >"$into" && [ -s "$into" ]
}
speaks() { output "$dir/spoken" "$@" && cat "$dir/spoken"; }
says() { # TEXT COMMAND...
    local text=$1
    shift
    "$@" >"$dir/heard" || { echo "exit code $?"; return 1; }
    grep -F -- "$text" "$dir/heard" || { echo "\"$text\" is not in:"; cat "$dir/heard"; return 1; }
}
prints() { # REGEX COMMAND...
    local text=$1
    shift
    "$@" >"$dir/heard" || { echo "exit code $?"; return 1; }
    grep -E -- "$text" "$dir/heard" || { echo "no line matches $text in:"; cat "$dir/heard"; return 1; }
}
same() {
    [ -n "$1" ] && [ "$1" = "$2" ] || { printf '"%s" and "%s"\n' "$1" "$2"; return 1; }
}
differ() {
    [ -n "$1" ] && [ -n "$2" ] && [ "$1" != "$2" ] || { printf '"%s" and "%s"\n' "$1" "$2"; return 1; }
}
same_files() {
    local first=$1 file
    shift
    [ $# -gt 0 ] && [ -s "$first" ] || { echo "$first is missing or empty"; return 1; }
    for file in "$@"; do cmp "$first" "$file" || return 1; done
}
other_files() {
    [ -s "$1" ] && [ -s "$2" ] || { echo "$1 or $2 is missing or empty"; return 1; }
    ! cmp -s "$1" "$2" || { echo "$1 and $2 are alike"; return 1; }
}
# A number or a sum of numbers; prints it.
value() {
    case $1 in
    *[0-9]*) awk "BEGIN { x = $1; if (x != x + 0 || x != x) exit 1; printf \"%.17g\n\", x }" 2>/dev/null | grep . ;;
    *) return 1 ;;
    esac
}
near() { # GOT WANTED RELATIVE
    local got want
    got=$(value "$1") && want=$(value "$2") || { echo "\"$1\" or \"$2\" is not a number"; return 1; }
    awk "BEGIN { d = $got - ($want); w = $want; if (d < 0) d = -d; if (w < 0) w = -w; exit !(d <= $3 * w) }" ||
        { echo "$got, not $want"; return 1; }
}
less() { # A B
    local got want
    got=$(value "$1") && want=$(value "$2") || { echo "\"$1\" or \"$2\" is not a number"; return 1; }
    awk "BEGIN { exit !($got < $want) }" || { echo "$got is not less than $want"; return 1; }
}
not() {
    "$@"
    [ $? -eq 1 ]
}

# Whether the program (or PROGRAM) can be started on several ranks: it was built with MPI, and mpirun is here.
has_ranks() {
    [ -n "${CLI_RANKS:-}" ] && return # the self-test's programs have nothing to look into
    command -v mpirun >/dev/null 2>&1 && nm "${1:-$program}" | grep -q ' MPI_Init'
}

skip() { # REASON
    skipped=$((skipped + 1))
    echo "  skipped: $1"
}

# Waits until FILE has something in it; gives up after half a minute, or when PROCESS has ended.
await() { # FILE [PROCESS]
    local tries=0
    until [ -s "$1" ]; do
        tries=$((tries + 1))
        [ $tries -le 600 ] && kill -0 "${2:-$$}" 2>/dev/null || return 1
        sleep 0.05
    done
}

closing_line() { # NAME
    if [ $skipped -gt 0 ]; then
        echo "$1: $passed passed, $failed failed, $skipped skipped"
    else
        echo "$1: $passed passed, $failed failed"
    fi
}
finish() {
    closing_line "$1"
    [ $failed -eq 0 ]
}

# The records of a metrics file without what depends on the clock.
timeless() { sed 's/,"seconds":[^,}]*//; s/,"tokens_per_second":[^,}]*//; /"event":"settings"/d; /"event":"end"/d' "$1"; }
