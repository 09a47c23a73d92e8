#!/bin/sh
# cli_keep.sh: dev/keep_training.sh. A run whose ranks are killed restarts from its newest checkpoint, with as many
# ranks or with those that are left, and ends with the weights, moments and records of the undisturbed run. A run that
# was asked to stop saves, and stays stopped. (What is not restarted: cli_tools.sh.)
. test/cli.sh
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 # containers run as root
export OMP_WAIT_POLICY=passive                                   # more threads than cores
keep="sh dev/keep_training.sh -w 0"
head -c 4000 README.md >"$dir/text"

if ! has_ranks; then
    skip "no Open MPI"
    finish cli_keep
    exit
fi

run="--layers 1 --heads 2 --channels 32 --seq-len 16 --data $dir/text --log-every 0 --threads 1 --batch 2 --total-batch 192"
run="$run --val-every 0 --sample-every 0 --steps 1200 --save-every 30"
last=step_00001200
identical() { # NAME: checkpoint and records are those of the undisturbed run
    timeless "$dir/straight/metrics.jsonl" >"$dir/a" && timeless "$dir/$1/metrics.jsonl" >"$dir/b" && same_files "$dir/a" "$dir/b" &&
        same_files "$dir/straight/$last/model.safetensors" "$dir/$1/$last/model.safetensors" &&
        same_files "$dir/straight/$last/optimizer.safetensors" "$dir/$1/$last/optimizer.safetensors"
}
# shellcheck disable=SC2086 # a list
check "the undisturbed run, one process" says "trained 1200 updates" "$program" $run --out "$dir/straight"

newest() { for entry in "$dir/$1"/step_*; do [ -d "$entry" ] && echo "${entry##*/}"; done | sort | tail -n 1; }
# moves_on NAME OLD: waits until the run has a checkpoint that is newer than OLD
moves_on() {
    turns=0
    until [ "$(newest "$1")" != "$2" ] || [ $turns -gt 600 ] || ! kill -0 "$keeper" 2>/dev/null; do
        sleep 0.05
        turns=$((turns + 1))
    done
}
# lose RANK: kill -9 to that rank of the keeper's job
lose() {
    for process in $(below "$keeper"); do
        { tr '\0' '\n' <"/proc/$process/environ"; } 2>/dev/null | grep -q "^OMPI_COMM_WORLD_RANK=$1\$" && kill -9 "$process"
    done
}
# start NAME RANKS: the supervised run
start() {
    # shellcheck disable=SC2086 # lists
    $keep -n "$2" mpirun --oversubscribe -np RANKS "$program" $run --out "$dir/$1" >"$dir/job" 2>&1 </dev/null &
    keeper=$!
}
for ranks in 2 3,2,1; do
    at "a supervised run on $ranks ranks"
    name=kept$ranks
    start $name $ranks
    moves_on $name ''
    lose 1
    first=$(newest $name)
    moves_on $name "$first"
    lose 0
    wait $keeper
    code=$?
    check "kill -9 of rank 1, then of rank 0; ranks $ranks: the undisturbed run, byte for byte" identical $name
    check "... with exit code 0" test $code -eq 0
    check "... after two restarts" test "$(grep -c '^keep_training: exit code 137, restart [12] of 10 from' "$dir/job")" -eq 2
done
check "... it says with how many ranks it starts again" grep -q "restart 2 of 10 from step_[0-9]* with 1 ranks" "$dir/job"
for signal in TERM USR1; do
    at "SIG$signal to the script"
    start asked$signal 2
    moves_on asked$signal ''
    kill -$signal $keeper 2>/dev/null
    wait $keeper
    check "SIG$signal to the script: the run saves, and the exit code is 75" test $? -eq 75
    check "... and it says which checkpoint is the newest" grep -q "keep_training: stopped on request; newest checkpoint: $(newest asked$signal)" "$dir/job"
    check "... which is that of the moment when it was asked" grep -q '"event":"end".*stopped' "$dir/asked$signal/metrics.jsonl"
done
finish cli_keep
