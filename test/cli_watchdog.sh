#!/bin/sh
# cli_watchdog.sh: ranks that die, are stopped or hang end the run, with one line that names them; nothing that
# strangers send over the network does, nor does it keep a lost rank alive. Strangers send only over loopback.
# Needs Open MPI for all but the refusals and hangs of one process. SOAK=1 floods for 10 s instead of 3.
. test/cli.sh
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 # containers run as root
export OMP_WAIT_POLICY=passive                                   # more threads than cores
shape="--layers 1 --heads 2 --channels 16 --seq-len 16 --batch 2 --total-batch 64 --threads 1 --log-every 0"
base="$shape --val-every 0 --sample-every 0 --save-every 0 --steps 1000000"
flood=3
[ -z "${SOAK:-}" ] || flood=10

for option in rank-timeout hang-timeout; do
    for value in 0.1 1e9 1e300 -1 nan; do
        refuses 2 "--$option" "--$option $value" "$program" $shape --$option $value --out "$dir/refused"
    done
done
check "--rank-timeout 0 and the largest are taken" "$program" $shape --steps 1 --rank-timeout 0 --hang-timeout 1e6 --out "$dir/limits"

# Whether calls can be made to fail: not on other systems, and not where the address sanitizer must come first.
can_fail() { [ -e "$build/fault_shim.so" ] && ! nm "$program" | grep -q __asan_init; }
if ! can_fail; then
    skip "calls that hang: they cannot be made to here"
    finish cli_watchdog
    exit
fi

# ---- one process whose main thread hangs
hang() { # CALL NTH: how a run of one process ends when its NTH CALL below --out never returns
    timeout 30 env LD_PRELOAD="$build/fault_shim.so" FAULT_UNDER="$dir/hung" FAULT_CALL="$1" FAULT_AT="$2" FAULT_KIND=hang \
        "$program" $base --save-every 3 --hang-timeout 1 --out "$dir/hung" --overwrite >"$dir/stdout" 2>"$dir/words" </dev/null
}
named() { [ "$(wc -l <"$dir/words")" -eq 1 ] && grep -q "rank 0 (process .*) hangs: while $1 it has made no progress for 1 s" "$dir/words"; }
for fault in "write 4,writing to log or screen" "fsync 3,saving a checkpoint" "mkdir 1,starting up" "rename 1,saving a checkpoint"; do
    hang ${fault%,*}
    check "a ${fault%% *} that hangs ends the run with 1" test $? -eq 1
    check "... and one line that says: while ${fault#*,}" named "${fault#*,}"
done

if ! has_ranks; then
    skip "no Open MPI"
    finish cli_watchdog
    exit
fi

# ---- three ranks
# begin OPTIONS...: starts a run on three ranks, with $mpi before the program; $job is mpirun.
mpi=
begin() {
    rm -rf "$dir/run"
    mpirun --oversubscribe -np 3 $mpi "$program" $base --rank-timeout 2 --out "$dir/run" "$@" >"$dir/job" 2>&1 </dev/null &
    job=$!
    tries=0
    until grep -q '"event":"train"' "$dir/run/metrics.jsonl" 2>/dev/null || ! kill -0 $job 2>/dev/null || [ $tries -gt 200 ]; do
        sleep 0.1
        tries=$((tries + 1))
    done
}
# The process of a rank; without a number all of them.
rank() {
    for process in $(pgrep -f "^$program .*$dir/run"); do
        tr '\0' '\n' <"/proc/$process/environ" | grep -q "^OMPI_COMM_WORLD_RANK=${1:-}" && echo "$process"
    done
}
over() { # SECONDS: waits for the end; $code
    tries=0
    while kill -0 $job 2>/dev/null && [ $tries -lt $(($1 * 10)) ]; do
        sleep 0.1
        tries=$((tries + 1))
    done
    kill -0 $job 2>/dev/null && echo "(still running after $1 s)" >>"$dir/job"
    kill -9 $job $(rank) 2>/dev/null
    wait $job 2>/dev/null
    code=$?
}
stopped_by_us() { # asks for an end: the run was alive
    kill -USR1 $job
    over 20
    [ $code -eq 75 ] && ! grep 'ends\{0,1\};' "$dir/job" # "... so all ranks end; ..."
}
lost() { # RANK: the run ended with 1 and the line about that rank

    [ $code -eq 1 ] && [ "$(grep -c "^train_gpt2: .* so all ranks end" "$dir/job")" -eq 1 ] && grep -q "rank $1 (process .*) has sent no heartbeat for 2 s" "$dir/job"
}
hangs() { # RANK PHASE
    [ $code -eq 1 ] && [ "$(grep -c "^train_gpt2: .* so all ranks end" "$dir/job")" -eq 1 ] && grep -q "rank $1 (process .*) hangs: while $2 it" "$dir/job"
}

begin
"$build/strangers" $flood $(rank) >"$dir/flood"
check "strangers sent noise, and forged and replayed packets where they may" grep -q 'noise [1-9].* calls [1-9]' "$dir/flood"
check "a flood ends no healthy run" stopped_by_us
begin
"$build/strangers" 60 $(rank) >/dev/null & # records packets of all ranks for a second, then sends them again
strangers=$!
sleep 2
kill -STOP $(rank 1)
over 20
kill $strangers 2>/dev/null
wait $strangers 2>/dev/null
check "... and keeps no stopped rank alive, while it lasts" lost 1

shim="-x LD_PRELOAD=$build/fault_shim.so"
mpi="$shim -x FAULT_CALL=sendto -x FAULT_AT=1 -x FAULT_ON=1 -x FAULT_KIND=drop" # no UDP arrives
begin
sleep 5
check "a network that loses all UDP ends no healthy run" stopped_by_us
check "... it is said, and that the kernel's count serves" grep -q "warning: rank 1 .*do not arrive.*kernel's count" "$dir/job"
begin
kill -STOP $(rank 2)
over 20
check "... and a stopped rank is noticed all the same" lost 2
if unshare -p -f true 2>/dev/null; then
    # Ranks that cannot see each other as processes, as on two machines: questions over TCP.
    mpi="$mpi --mca btl tcp,self unshare -p -f"
    begin
    sleep 5
    kill -0 $job
    check "without UDP, between systems: no healthy run is ended" test $? -eq 0
    check "... it is said, and that TCP serves" grep -q "warning: rank 1 .*do not arrive.*questions over TCP" "$dir/job"
    kill -STOP $(rank 1)
    over 20
    check "... and a stopped rank is noticed all the same" lost 1
else
    skip "ranks that do not see each other: no process namespaces here"
fi

mpi="$shim -x FAULT_CALL=rename -x FAULT_UNDER=$dir/run -x FAULT_AT=1 -x FAULT_KIND=hang -x FAULT_RANK=0"
begin --hang-timeout 1 --save-every 3
over 20
check "a save that hangs on rank 0 of three is named, not those who wait" hangs 0 "saving a checkpoint"
mpi="$shim -x FAULT_CALL=open -x FAULT_UNDER=$PWD/README.md -x FAULT_AT=1 -x FAULT_KIND=hang -x FAULT_RANK=2"
begin --hang-timeout 1 --data "$PWD/README.md"
over 20
check "data that cannot be read on rank 2 (a dead file server) are named" hangs 2 "starting up"
mpi=
begin --hang-timeout 1
for process in $(rank); do kill -STOP "$process"; done
sleep 4
for process in $(rank); do kill -CONT "$process"; done
check "a job that is stopped as a whole and continued resumes" stopped_by_us
begin --hang-timeout 1 --sample-every 2 --sample-tokens 5000000 # rank 0 writes it for a minute, the others wait
sleep 11 # a rank that only waits may end after 1 + 2 * 3 s
check "waiting for a rank that gets on, even for long, is not a hang" kill -0 $job
kill $job $(rank)
wait $job 2>/dev/null

# ---- little room for shared memory
if unshare -m true 2>/dev/null; then
    small() { # KILOBYTES
        rm -rf "$dir/run"
        timeout 60 unshare -m sh -c "mount --make-rprivate / && mount -t tmpfs -o size=$1k none /dev/shm &&
            exec mpirun --oversubscribe -np 3 '$program' $base --steps 3 --save-every 3 --out '$dir/run'" >"$dir/job" 2>&1 </dev/null
    }
    check "a run with all the memory it may share" small 65536
    cp "$dir/run/step_00000003/model.safetensors" "$dir/large"
    for size in 16 8192; do
        check "$size KB of /dev/shm for three ranks do not hang or kill them" small $size
        check "... and change nothing" cmp "$dir/large" "$dir/run/step_00000003/model.safetensors"
    done
else
    skip "a small /dev/shm: nothing can be mounted here"
fi
finish cli_watchdog
