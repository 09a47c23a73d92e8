#!/bin/sh
# run.sh TEST...: runs test programs and scripts (*.sh) one after the other and adds up their closing
# lines "NAME: N passed, N failed[, N skipped]". Shown are that line, what failed, and why something was
# skipped; with V=1 everything. A test that dies, cannot be run or has no closing line has failed, and so
# has one whose exit code says other than its closing line. The last line is the sum; exit code 0 means
# that nothing failed.
passed=0 failed=0 skipped=0 broken=''
log=${BUILD:-build}/test.log
mkdir -p "${log%/*}" || exit 1
export LC_ALL=C # the same order of names and the same words everywhere

# The number before WORD in a closing line, or 0.
number() { echo "$line" | sed -n "s/.* \([0-9][0-9]*\) $1.*/\1/p" | grep . || echo 0; }

fail() { # NAME WHY
    failed=$((failed + 1)) broken="$broken $1"
    [ -n "$V" ] || cat "$log"
    echo "$1: $2"
}

for test in "$@"; do
    [ -z "$V" ] || echo "==== $test"
    case $test in
    *.sh) sh "$test" ;;
    */*) "$test" ;;
    *) "./$test" ;;
    esac >"$log" 2>&1 </dev/null
    code=$?
    [ -z "$V" ] || cat "$log"
    name=${test##*/}
    line=$(tail -n 1 "$log" | grep -E '^[^ ]+: [0-9]+ passed, [0-9]+ failed(, [0-9]+ skipped)?$')
    if [ -z "$line" ]; then
        if [ $code -gt 128 ]; then
            fail "$name" "ended by signal $((code - 128)), without its closing line"
        else
            fail "$name" "ended with exit code $code, without its closing line"
        fi
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
