#!/bin/sh
# run.sh TEST...: runs test programs and scripts (*.sh) one after the other and adds up their closing
# lines "NAME: N passed, N failed[, N skipped]". Shown are that line, what failed, and why something was
# skipped; with V=1 everything. A test that dies, cannot be run or has no closing line has failed, and so
# has one whose exit code says other than its closing line. A test that does not end within RUN_LIMIT seconds
# (1200) is ended, with all it started, and named with what it was at; what a test leaves running is ended too.
# (Programs and scripts have a limit of their own for each check, test.h and cli.sh; this is for where those
# cannot act.) The last line is the sum; exit code 0 means that nothing failed.
passed=0 failed=0 skipped=0 broken=''
log=${BUILD:-build}/test.log
mkdir -p "${log%/*}" || exit 1
limit=${RUN_LIMIT:-1200}
TEST_NOW=$(cd "${log%/*}" && pwd)/test.now # a test notes there what it is at
export TEST_NOW
within='' # `timeout` puts a test into a process group of its own
command -v timeout >/dev/null 2>&1 && within="timeout -k 10 $limit"
export LC_ALL=C # the same order of names and the same words everywhere

group=
trap '[ -z "$group" ] || kill -TERM -$group 2>/dev/null; exit 130' INT TERM

# The number before WORD in a closing line, or 0.
number() { echo "$line" | sed -n "s/.* \([0-9][0-9]*\) $1.*/\1/p" | grep . || echo 0; }

fail() { # NAME WHY
    failed=$((failed + 1)) broken="$broken $1"
    [ -n "$V" ] || cat "$log"
    echo "$1: $2"
}

for test in "$@"; do
    [ -z "$V" ] || echo "==== $test"
    rm -f "$TEST_NOW"
    case $test in
    *.sh) set -- sh "$test" ;;
    */*) set -- "$test" ;;
    *) set -- "./$test" ;;
    esac
    $within "$@" >"$log" 2>&1 </dev/null &
    group=$! begun=$(date +%s)
    wait $group
    code=$?
    [ -z "$within" ] || kill -KILL -$group 2>/dev/null # what it left running
    [ -z "$V" ] || cat "$log"
    name=${test##*/}
    if [ -n "$within" ] && [ $code -ne 0 ] && [ $(($(date +%s) - begun)) -ge "$limit" ]; then
        now=$(cat "$TEST_NOW" 2>/dev/null)
        fail "$name" "did not end within $limit seconds${now:+, in \"$now\"}"
        continue
    fi
    if [ $code -gt 128 ]; then
        now=$(cat "$TEST_NOW" 2>/dev/null)
        fail "$name" "ended by signal $((code - 128))${now:+, in \"$now\"}"
        continue
    fi
    line=$(tail -n 1 "$log" | grep -E '^[^ ]+: [0-9]+ passed, [0-9]+ failed(, [0-9]+ skipped)?$')
    if [ -z "$line" ]; then
        fail "$name" "ended with exit code $code, without its closing line"
        continue
    fi
    bad=$(number failed)
    passed=$((passed + $(number passed))) skipped=$((skipped + $(number skipped)))
    if [ "$bad" -eq 0 ] && [ $code -ne 0 ]; then
        fail "$name" "says that all passed, but ended with exit code $code"
    elif [ "$bad" -gt 0 ]; then
        failed=$((failed + bad)) broken="$broken $name"
        [ -n "$V" ] || cat "$log"
    elif [ -z "$V" ]; then
        grep -E '^ *skipped' "$log"
        echo "$line"
    fi
done

[ -z "$broken" ] || printf '\nfailed:%s\n' "$broken"
echo
if [ $skipped -gt 0 ]; then
    echo "$passed passed, $failed failed, $skipped skipped"
else
    echo "$passed passed, $failed failed"
fi
[ $failed -eq 0 ] && [ $passed -gt 0 ]
