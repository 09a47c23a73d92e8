#!/bin/sh
# cli_plain.sh: the program on the plain loops (make train_gpt2 KERNELS=plain) is the program: its records
# are those of the CPU build, checkpoints go back and forth, and it keeps the rules of llmc/ops.h: exact
# sums on any number of ranks, blocks computed again, and no update with numbers that are not finite.
. test/cli.sh
plain=$build/train_gpt2_plain
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMP_NUM_THREADS=1
head -c 900 README.md >"$dir/text" # 899 targets: 56 sequences of 16 and one of 3
shape="--layers 2 --heads 2 --channels 32 --seq-len 16 --data $dir/text --val $dir/text --batch 3 --total-batch 176"
shape="$shape --warmup 2 --lr 1e-2 --clip 0.5 --sample-every 0 --log-every 0 --val-every 4 --rank-timeout 0"
last=step_00000006
run() { # PROGRAM NAME OPTIONS...
    binary=$1 name=$2
    shift 2
    # shellcheck disable=SC2086 # lists
    ${launcher-} "$binary" $shape --out "$dir/$name" "$@" >"$dir/$name.out" 2>&1 && [ -s "$dir/$name.out" ] && return
    tail -n 5 "$dir/$name.out"
    return 1
}
near_run() { sh dev/compare_runs -t "$1" "$dir/$2" "$dir/$3"; }
trained() { same "$(grep -c '"event":"train"' "$dir/$1/metrics.jsonl")" "$2"; } # RUN STEPS
identical() { # RUN RUN: every record, and the bytes of weights and moments at the end
    near_run 0 "$1" "$2" && same_files "$dir/$1/$last/model.safetensors" "$dir/$2/$last/model.safetensors" &&
        same_files "$dir/$1/$last/optimizer.safetensors" "$dir/$2/$last/optimizer.safetensors"
}

# ---- the same run as with the fast kernels
check "the CPU build trains for 6 steps" run "$program" cpu --steps 6 --save-every 3
check "the plain build trains for 6 steps" run "$plain" plain --steps 6 --save-every 3
check "... and logs all of them" trained plain 6
check "... says what it runs on" grep -q "plain loops" "$dir/plain.out"
check "... its losses, norms and rates are the CPU build's to 1e-5, its data the same" near_run 1e-5 cpu plain
check "--no-exact is that run to 1e-5 too" run "$plain" floats --steps 6 --no-exact
check "... it is" near_run 1e-5 cpu floats
check "the plain build continues the CPU build's run" run "$plain" taken --steps 6 --resume "$dir/cpu/step_00000003"
check "the CPU build continues the plain build's run" run "$program" back --steps 6 --resume "$dir/plain/step_00000003"
end_of() { sed -n 's/.*"event":"train".*"step":5,"loss":\([^,]*\),.*/\1/p' "$dir/$1/metrics.jsonl"; }
ends_alike() { near "$(end_of "$1")" "$(end_of "$2")" 1e-5; }
check "... and both end where the other would have" ends_alike taken cpu
check "... (the CPU build too)" ends_alike back plain

# ---- the rules of ops.h
check "blocks computed again" run "$plain" recompute --steps 6 --recompute
check "... give the same bits" identical plain recompute
if has_ranks; then
    for R in 2 3; do
        launcher="mpirun --oversubscribe -np $R"
        check "exact sums over $R ranks" run "$plain" ranks$R --steps 6
        check "... give the bits of one rank" identical plain ranks$R
    done
    check "a rank without a micro-batch: 3 ranks, 2 micro-batches" run "$plain" idle3 --steps 6 --batch 6
    launcher=
    check "... one rank does the same" run "$plain" idle1 --steps 6 --batch 6
    check "... with the same bits" identical idle1 idle3
    launcher="mpirun --oversubscribe -np 2"
    check "sums of floats over 2 ranks" run "$plain" floats2 --steps 6 --no-exact
    check "... are one rank's to 1e-5" near_run 1e-5 floats floats2
    launcher=
else
    skip "no Open MPI: sums over ranks"
fi
diverges() {
    run "$1" diverged --steps 6 --lr 1e30 --clip 0 --schedule constant --warmup 0 --overwrite
    [ $? -ne 0 ] && grep -q 'not finite' "$dir/diverged.out"
}
check "a learning rate of 1e30 ends with numbers that are not finite, and says so" diverges "$plain"

finish cli_plain
