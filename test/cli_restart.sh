#!/bin/sh
# cli_restart.sh: one run a directory. Two starts on one directory never mix, whenever the second comes; a
# supervisor that restarts at once after mpirun was killed waits for the ranks that still live; and every end is
# the undisturbed run's, byte for byte but for times. What belongs to others is neither followed, cut nor removed.
# A disk that is full at any moment, and then has room again, costs nothing but time.
# SOAK=1: 200 pairs of starts, 100 restarts and 100 full disks instead of 6, 3 and 6 (make soak).
. test/cli.sh
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 # containers run as root
export OMP_WAIT_POLICY=passive                                   # more threads than cores
pairs=6 restarts=3 disks=6
[ -n "${SOAK:-}" ] && pairs=200 restarts=100 disks=100
head -c 4000 README.md >"$dir/text"
base="--layers 1 --heads 2 --channels 16 --seq-len 16 --data $dir/text --log-every 0 --threads 1 --batch 2"
base="$base --total-batch 64 --val-every 0 --sample-every 0"

records() { timeless "$dir/$1/metrics.jsonl"; }
# identical A B STEP: checkpoint, records and log.txt of two runs, and that neither has anything unfinished.
identical() {
    for file in config.json model.safetensors optimizer.safetensors; do
        cmp "$dir/$1/$(step "$3")/$file" "$dir/$2/$(step "$3")/$file" || return 1
    done
    records "$1" >"$dir/a" && records "$2" >"$dir/b" && [ -s "$dir/a" ] && cmp "$dir/a" "$dir/b" &&
        cmp "$dir/$1/log.txt" "$dir/$2/log.txt" && ends_once "$2" && [ -z "$(find "$dir/$2" -name '*.tmp')" ]
}
step() { printf 'step_%08d' "$1"; }
ends_once() { [ "$(grep -c '"event":"end".*"done"' "$dir/$1/metrics.jsonl")" = 1 ]; }
# A pause of FROM to TO seconds that depends on the turn N alone.
pause() { sleep "$(awk "BEGIN { srand($1); printf \"%.3f\", $2 + ($3 - $2) * rand() }")"; }
start() { # NAME OPTIONS...
    name=$1
    shift
    # shellcheck disable=SC2086 # a list
    "$program" $base --out "$dir/$name" "$@"
}

# ---- two starts
short="--steps 120 --save-every 25"
# shellcheck disable=SC2086 # lists
check "120 steps, undisturbed" says "trained 120 updates" start straight $short
# pair N OPTIONS...: the same start twice, a moment apart. Says how many of them trained, and their exit codes.
pair() {
    turn=$1
    shift
    rm -rf "$dir/pair"
    # shellcheck disable=SC2086 # lists
    start pair $short "$@" >"$dir/first" 2>"$dir/first.err" </dev/null &
    first=$!
    pause "$turn" 0 0.25
    # shellcheck disable=SC2086 # lists
    start pair $short "$@" >"$dir/second" 2>"$dir/second.err" </dev/null
    b=$?
    wait $first
    a=$?
    echo "$(cat "$dir/first" "$dir/second" | grep -c '^trained 120 updates') trained, exit $a and $b"
}
# exactly_one PAIRS WANTED OPTIONS...: whether of each pair one trained, to the undisturbed end. (On a slow machine
# the first may take longer than the second waits: then that one ends with 1.)
exactly_one() {
    n=$1 wanted=$2 turn=0
    shift 2
    while [ $turn -lt "$n" ]; do
        turn=$((turn + 1))
        at "pair $turn of $n"
        seen=$(pair $turn "$@")
        echo "$seen" | grep -qE "^1 trained, exit $wanted\$" && identical straight pair 120 && continue
        echo "pair $turn: $seen"
        cat "$dir/first.err" "$dir/second.err"
        return 1
    done
}
half=$((pairs / 2))
check "of two starts with --resume auto one trains, the other finds it finished ($half pairs)" exactly_one $half "(0 and [01]|1 and 0)" --resume auto
check "of two starts without, one trains, the other is refused ($half pairs)" exactly_one $half "(0 and [12]|[12] and 0)"

# A run that continues while others start. (It is stopped in the end.)
# shellcheck disable=SC2086 # lists
"$program" $base --out "$dir/live" --steps 1000000 --save-every 0 >"$dir/live.out" 2>&1 &
live=$!
check "a run that continues" await "$dir/live/log.txt" $live
# shellcheck disable=SC2086 # lists
"$program" $base --out "$dir/live" --steps 9 --overwrite >"$dir/overwrite.out" 2>"$dir/overwrite.err" &
overwrite=$!
refuses 1 "is in use by process $live on $(uname -n)" "a live run is named to who comes second" start live --steps 9 --resume auto
wait $overwrite
check "... and to --overwrite, which removes nothing" grep -q "is in use by process $live on" "$dir/overwrite.err"
# (log.txt may grow while it is read)
steps_in_order() { [ -s "$dir/live/log.txt" ] && sed -n 's/ train .*//p' "$dir/live/log.txt" | head -n -1 | awk '$1 != NR - 1 { exit 1 }'; }
check "... whose log has each step once" steps_in_order
mv "$dir/live" "$dir/moved"
kill -TERM $live
ends_as_moved() { wait $live; [ $? -eq 1 ] && grep "was moved, removed or replaced" "$dir/live.out"; }
check "a run whose directory was moved ends with 1, and says so" ends_as_moved
check "... and makes nothing in its old place" test ! -e "$dir/live"

# ---- restarts at once after kill -9 of mpirun
long="--steps 400 --save-every 20"
# restart N: 3 ranks, mpirun is killed at some moment, and started again at once; ends like the undisturbed run.
restart() {
    rm -rf "$dir/restarted"
    for try in 1 2 3; do
        # shellcheck disable=SC2086 # lists
        mpirun --oversubscribe -np 3 "$program" $base $long --out "$dir/restarted" --resume auto >"$dir/try.out" 2>"$dir/try.err" </dev/null &
        pid=$!
        [ $try -eq 3 ] || { pause "$1$try" 0.3 1.2 && kill -9 $pid 2>/dev/null; }
        wait $pid
        code=$?
    done 2>/dev/null # the shell's word on killed jobs
    [ $code -eq 0 ] && identical undisturbed restarted 400 && return
    echo "restart $1: exit $code"
    cat "$dir/try.out" "$dir/try.err"
    return 1
}
restart_all() {
    n=0
    while [ $n -lt $restarts ]; do
        n=$((n + 1))
        at "restart $n of $restarts"
        restart $n || return 1
    done
}
if has_ranks; then
    # shellcheck disable=SC2086 # lists
    check "400 steps, undisturbed" says "trained 400 updates" start undisturbed $long
    check "$restarts times, restarts at once after kill -9 of mpirun end as if nothing had been" restart_all
else
    skip "no Open MPI"
fi

# ---- a full disk
# full_disk N: on a disk of some size, on 1 rank or on 3, until it is full; then there is room, and the run continues.
full_disk() {
    kilobytes=$(awk "BEGIN { srand($1); print 80 + int(380 * rand()) }")
    umount "$dir/small" 2>/dev/null
    mount -t tmpfs -o size="${kilobytes}k" none "$dir/small" || return 1
    ranks=
    [ $(($1 % 2)) -eq 0 ] && has_ranks && ranks="mpirun --oversubscribe -np 3"
    for room in "$kilobytes" 8000; do
        mount -o remount,size="${room}k" "$dir/small" || return 1
        # shellcheck disable=SC2086 # lists
        $ranks "$program" $base $short --out "$dir/small/run" --resume auto >"$dir/full.out" 2>"$dir/full.err" </dev/null
        code=$?
        [ $code -eq 0 ] || { [ $code -eq 1 ] && [ "$room" != 8000 ] && grep -q "No space left" "$dir/full.err"; } || break
        [ $code -eq 0 ] || full=$((full + 1))
    done
    [ $code -eq 0 ] && identical straight small/run 120 && return
    echo "disk of $kilobytes KB: exit $code"
    cat "$dir/full.out" "$dir/full.err"
    return 1
}
full_disks() {
    n=0 full=0
    while [ $n -lt $disks ]; do
        n=$((n + 1))
        at "full disk $n of $disks"
        full_disk $n || return 1
    done
    [ $full -gt $((disks / 3)) ] || { echo "only $full disks of $disks were ever full"; return 1; }
}
if mkdir "$dir/small" && mount -t tmpfs -o size=200k none "$dir/small" 2>/dev/null; then
    check "$disks times, a run whose disk was full ends as if nothing had been, once there is room" full_disks
else
    skip "a full disk: no small file system can be mounted here"
fi
finish cli_restart
