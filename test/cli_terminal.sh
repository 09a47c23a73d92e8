#!/bin/sh
# cli_terminal.sh: what the program finds around it: a terminal or none, also behind mpirun; OMP_NUM_THREADS;
# a terminal that goes away.
. test/cli.sh
export TERM=xterm OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
unset OMP_NUM_THREADS

text=$dir/text.txt
seq 4000 >"$text"
small="--data $text --layers 1 --heads 2 --channels 16 --seq-len 16 --batch 4 --total-batch 64 --sample-every 0
       --val-every 0 --steps 3 --overwrite --out $dir/run"
# shellcheck disable=SC2086 # a list
train() { "$program" $small "$@"; }

# ---- a status line is for people, lines are for files
escape=$(printf '\033')
has_lines() { # FILE: a line for each of three steps, and no control character
    [ "$(grep -c '^step  *[0-9]* | loss: ' "$1")" -eq 3 ] && ! grep -q "[$escape$(printf '\r')]" "$1"
}
has_bar() { grep -q "$escape\\[K.*step 3/3 | loss" "$1" && ! grep -q '| loss: ' "$1"; }
on_terminal() { # COMMAND WORD...: its output on a pseudo-terminal goes to $dir/seen
    script -qec "$*" "$dir/seen" >/dev/null && grep 'trained 3 updates' "$dir/seen"
}
check "into a file go lines" output "$dir/seen" train
check "... one a step, without control characters" has_lines "$dir/seen"
check "--progress bar shows the bar there, too" output "$dir/seen" train --progress bar
check "... and no lines" has_bar "$dir/seen"
refuses 2 "--progress 'pie'" "another kind of progress is refused" train --progress pie
terminal=
command -v script >/dev/null 2>&1 && script --version 2>/dev/null | grep -q util-linux && terminal=yes
if [ $terminal ]; then
    check "on a terminal" on_terminal "'$program'" $small
    check "... there is a bar" has_bar "$dir/seen"
    check "on a terminal that knows no escape sequences" on_terminal TERM=dumb "'$program'" $small
    check "... there is none" not has_bar "$dir/seen"
    check "--progress lines" on_terminal "'$program'" $small --progress lines
    check "... shows lines on a terminal" test "$(grep -c '| loss: ' "$dir/seen")" -eq 3
else
    skip "no script of util-linux: the program on a terminal"
fi
if has_ranks; then
    ranks="mpirun --oversubscribe -np 2"
    check "mpirun's output in a file" output "$dir/seen" $ranks "$program" $small
    check "... has lines, although ranks have a terminal of their own" has_lines "$dir/seen"
    check "the same with a shell between" output "$dir/seen" $ranks sh -c "'$program' $(echo $small); true"
    check "... has lines" has_lines "$dir/seen"
    if [ $terminal ]; then
        check "mpirun on a terminal" on_terminal $ranks "'$program'" $small
        check "... has a bar" has_bar "$dir/seen"
        check "mpirun into a pipe, started on a terminal" on_terminal "$ranks '$program' $(echo $small) | cat"
        check "... has lines" test "$(grep -c '| loss: ' "$dir/seen")" -eq 3
    fi
else
    skip "mpirun, or a program built with MPI, is missing: what ranks show"
fi

# ---- OMP_NUM_THREADS
if grep -q fopenmp "$build/flags"; then
    check "OMP_NUM_THREADS is followed, and said" says "3 threads (OMP_NUM_THREADS)" env OMP_NUM_THREADS=3 "$program" $small
    check "... of a list the first number" says "2 threads (OMP_NUM_THREADS)" env OMP_NUM_THREADS=2,4 "$program" $small
    check "--threads comes before it" says "1 thread (--threads)" env OMP_NUM_THREADS=3 "$program" $small --threads 1
    check "without either there is a thread a core" says "(one a core)" train
    if has_ranks && command -v taskset >/dev/null; then
        # Ranks that may run on all cores share them; one that is bound to a core has that one.
        share=$(($(nproc) / 2))
        [ "$share" -ge 1 ] || share=1
        check "two ranks share the cores" prints "[ ,]$share threads? \(its share of the cores[;)]" \
            mpirun --oversubscribe --bind-to none -np 2 "$program" $small
        check "... bound to one core, they have a thread" prints "[ ,]1 thread \(its share of the cores[;)]" \
            mpirun --oversubscribe --bind-to none -np 2 taskset -c 0 "$program" $small
    fi
    # The OpenMP library itself shows how its threads wait. The last of its lists counts: the program starts itself
    # again after it has set what the environment did not.
    waiting() { # VARIABLE=VALUE...: what the library says
        env -u OMP_WAIT_POLICY -u GOMP_SPINCOUNT -u KMP_BLOCKTIME OMP_DISPLAY_ENV=verbose "$@" \
            "$program" $small >"$dir/shown" 2>&1 || return 1
        sed -n "s/^ *\(\[host\] *\)\{0,1\}\(GOMP_SPINCOUNT\|KMP_BLOCKTIME\) *= *'\([0-9]*\).*/\3/p" "$dir/shown" | tail -n 1
    }
    if ldd "$program" 2>/dev/null | grep -q libgomp; then
        check "threads that wait spin briefly, then sleep" same "$(waiting OMP_DYNAMIC=false)" 1000
        check "... unless GOMP_SPINCOUNT says how long" same "$(waiting GOMP_SPINCOUNT=77)" 77
        check "... or OMP_WAIT_POLICY, that they sleep at once" same "$(waiting OMP_WAIT_POLICY=passive)" 0
        check "... or that they spin" less 1000000 "$(waiting OMP_WAIT_POLICY=active)"
    elif ldd "$program" 2>/dev/null | grep -q libomp; then
        check "threads that wait spin briefly, then sleep" same "$(waiting OMP_DYNAMIC=false)" 1
        check "... unless KMP_BLOCKTIME says how long" same "$(waiting KMP_BLOCKTIME=77)" 77
    else
        skip "neither GCC's nor clang's OpenMP library: how threads wait"
    fi
    for wrong in none 0 -1 5000 2x; do
        env OMP_NUM_THREADS=$wrong "$program" $small >"$dir/stdout" 2>"$dir/wrong" # libgomp has its say as well
        check "OMP_NUM_THREADS=$wrong is refused" test $? -eq 2
        check "... by name" grep -q "OMP_NUM_THREADS is \"$wrong\", expected a whole number from 1 to 4096" "$dir/wrong"
    done
fi

# ---- a terminal that goes away (SIGHUP)
long="$small --steps 1000000 --save-every 0 --log-every 0"
hang_up() { # NAME COMMAND...: starts it, and hangs up twice when it trains
    rm -rf "$dir/run"
    name=$1
    shift
    "$@" >"$dir/$name.out" 2>&1 &
    pid=$!
    await "$dir/run/log.txt" $pid
    kill -HUP $pid
    sleep 0.05 # or both would be one
    kill -HUP $pid 2>/dev/null
}
# shellcheck disable=SC2086 # a list
hang_up gone "$program" $long --total-batch 65536 # an update long enough for both
wait $pid
check "SIGHUP, also twice, ends with 75" test $? -eq 75
check "... a checkpoint" test -n "$(ls -d "$dir"/run/step_*)"
check "... and the way on" grep -q -- "--resume auto --out $dir/run" "$dir/gone.out"
# shellcheck disable=SC2086 # a list
hang_up stays nohup "$program" $long
lines=$(wc -l <"$dir/run/log.txt")
more_lines() { # the run continues
    tries=0
    until [ "$(wc -l <"$dir/run/log.txt")" -gt $((lines + 100)) ]; do
        tries=$((tries + 1))
        [ $tries -le 600 ] && kill -0 $pid || return 1
        sleep 0.05
    done
}
check "under nohup a run continues after SIGHUP" more_lines
kill -TERM $pid
wait $pid
check "... and SIGTERM still ends it with 75" test $? -eq 75

# ---- a second signal ends a run that is still in its update
for signal in INT TERM USR1; do
    rm -rf "$dir/run"
    # shellcheck disable=SC2086 # a list
    "$program" $long --total-batch 268435456 >"$dir/two.out" 2>&1 & # an update of hours
    pid=$!
    await "$dir/run/log.txt" $pid
    sleep 0.2
    kill -$signal $pid
    sleep 0.2
    check "SIG$signal lets the update go on" kill -0 $pid
    kill -$signal $pid
    wait $pid 2>/dev/null
    check "... a second SIG$signal ends it at once" test $? -gt 128
done

finish cli_terminal
