#!/bin/sh
# cli_run.sh: test/run.sh, which runs all other tests, counts right and is not fooled.
. test/cli.sh
unset V

# A test script called NAME that does COMMANDS.
test_script() { printf '%s\n' "$2" >"$dir/$1.sh"; }
test_script good 'echo noise; echo "good: 3 passed, 0 failed"'
test_script skips 'echo "  skipped far: no ladder"; echo "skips: 2 passed, 0 failed, 4 skipped"'
test_script bad 'echo "  because of this"; echo "bad: 5 passed, 2 failed, 1 skipped"; exit 1'
test_script silent 'echo "some line"'
test_script dies 'echo "dies: 1 passed, 0 failed"; kill -9 $$'
test_script early 'echo "early: 9 passed, 0 failed"; echo "early: Segmentation fault"; exit 139'
test_script liar 'echo "liar: 9 passed, 0 failed"; exit 1'
test_script reads 'read -r x && exit 1; echo "reads: 1 passed, 0 failed"'
test_script stuck 'echo "half a " >"$TEST_NOW"; trap "" TERM; while :; do sleep 1; done'
test_script leaves "sleep 1000 & echo \$! >'$dir/left'; echo 'leaves: 1 passed, 0 failed'"
# What the harness for programs does with a test that hangs.
cat >"$dir/slow.c" <<END
#include "$PWD/test/test.h"
TEST(quick, "this one ends") {}
TEST(slow, "this one hangs") { for (;;) pause(); }
TEST(never, "this one is not tried") {}
int main(int argc, char **argv) { return test_main(argc, argv); }
END
# ... and what that for scripts does.
test_script hangs '. test/cli.sh
check "this one ends" true
check "this one hangs" sleep 1000
check "this one is not tried" true
finish hangs'
test_script between '. test/cli.sh
check "this one ends" true
while :; do sleep 1; done
finish between'

# run CODE LAST NAME...: run.sh on these tests ends with CODE and the line LAST.
run() {
    code=$1 last=$2
    shift 2
    for name in "$@"; do tests="${tests-} $dir/$name.sh"; done
    # shellcheck disable=SC2086 # a list
    BUILD=$dir sh test/run.sh $tests >"$dir/seen"
    got=$?
    tests=
    cat "$dir/seen"
    [ $got -eq "$code" ] && [ "$(tail -n 1 "$dir/seen")" = "$last" ]
}
shows() { grep -qF -- "$1" "$dir/seen"; }
hides() { ! shows "$1"; }

check "what passed is added up" run 0 "4 passed, 0 failed" good reads
check "... without its noise" hides noise
check "skips are counted" run 0 "5 passed, 0 failed, 4 skipped" good skips
check "... and their reasons shown" shows "no ladder"
check "a failure fails the whole" run 1 "8 passed, 2 failed, 1 skipped" good bad
check "... and shows its details" shows "because of this"
check "no closing line is a failure" run 1 "3 passed, 1 failed" silent good
check "... that says so" shows "silent.sh: ended with exit code 0, without its closing line"
check "a test that crashes after its closing line has failed" run 1 "0 passed, 1 failed" dies
check "a closing line that is not the last does not count" run 1 "0 passed, 1 failed" early
check "an exit code that contradicts the closing line is a failure" run 1 "9 passed, 1 failed" liar
check "a test that is not there is a failure" run 1 "3 passed, 1 failed" good missing
check "no test at all is not a success" run 1 "0 passed, 0 failed"
# ---- time limits
export RUN_LIMIT=2
check "a test that does not end has failed, and the next is run" run 1 "3 passed, 1 failed" stuck good
check "... named with what it was at" shows 'stuck.sh: did not end within 2 seconds, in "half a "'
unset RUN_LIMIT
check "what a test leaves running does not trouble it" run 0 "1 passed, 0 failed" leaves
ended() { ! ps -o stat= -p "$1" | grep -v Z; } # it may be dead without anybody having asked
check "... and is ended" ended "$(cat "$dir/left")"
export CLI_LIMIT=2
check "a script ends where a check hangs" run 1 "1 passed, 1 failed" hangs
check "... and names it" shows "FAILED: this one hangs: did not end within 2 seconds"
check "a script ends where it hangs between checks" run 1 "1 passed, 1 failed" between
check "... and names the last one" shows "FAILED: after: this one ends: did not end within 2 seconds"
unset CLI_LIMIT
if ${CC:-cc} -o "$dir/slow.sh.program" "$dir/slow.c" -lm 2>"$dir/cc"; then
    printf 'exec "%s"\n' "$dir/slow.sh.program" >"$dir/slow.sh"
    export TEST_LIMIT=1
    check "a program ends where a test hangs" run 1 "1 passed, 1 failed" slow
    check "... and names it" shows "FAILED slow: this one hangs"
    unset TEST_LIMIT
else
    skip "no C compiler: the limit of test programs"
fi

V=1 BUILD=$dir sh test/run.sh "$dir/good.sh" >"$dir/seen"
check "V=1 shows everything" shows noise

finish cli_run
