#!/bin/sh
# cli_cuda.sh: the CUDA program on the emulator is the program: its curves lie on the CPU's, a run is the same
# run on any number of ranks, and checkpoints go back and forth. Next: cli_gpu.sh.
. test/cli.sh
export OMP_NUM_THREADS=1
shape="--layers 2 --heads 1 --channels 64 --seq-len 24 --val-every 0 --sample-every 0 --log-every 0"
awk 'BEGIN { for (i = 0; i < 700; i++) printf "%d squared is %d\n", i, i * i }' >"$dir/text"
short="$shape --data $dir/text --batch 3 --total-batch 96 --warmup 4 --lr 1e-3 --rank-timeout 0"
run() { # PROGRAM NAME OPTIONS...
    binary=$1 name=$2
    shift 2
    # shellcheck disable=SC2086 # lists
    ${launcher-} "$build/$binary" $short --out "$dir/$name" "$@" >"$dir/$name.out" 2>&1 && [ -s "$dir/$name.out" ] && return
    cat "$dir/$name.out"
    return 1
}
ranks="env ASAN_OPTIONS=detect_leaks=0 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --oversubscribe -np 2"
# The losses only: the norm, a sum over everything, is less sharp.
near_run() { sh dev/compare_runs -t "$1" "$dir/$2" "$dir/$3"; }
same_run() { sh dev/compare_runs "$dir/$1" "$dir/$2"; }

if [ ! -x "$build/train_gpt2emu_fp32" ]; then
    skip "there is no C++ compiler for the emulator"
    finish cli_cuda
    exit
fi

# ---- every kernel was executed, in every order
kernels=$(sed -n '/__global__/,/(/s/.*[ *]\([a-z_]*_kernel\)(.*/\1/p' llmc/cuda/*.cuh | sort)
backend_with() { # VARIABLE=VALUE PRECISION [TEST]: the backend's tests pass, and there are some
    prints ': [1-9][0-9]* passed, 0 failed' env "$1" "$build/backend_$2" ${3-}
}
executed() { # KERNEL: whether the backend's tests ran it in all three orders
    [ "$(sed -n "s/^(*$1[^ ]* //p" "$dir/kernels" | sort -u | wc -l)" -eq 3 ]
}
for precision in bf16 fp32; do
    check "all kernels pass their tests ($precision)" backend_with EMULATOR_KERNELS="$dir/kernels" $precision
done
for kernel in $kernels; do
    check "$kernel ran forward, reversed and in random order" executed "$kernel"
done
echo "  kernels: $(echo "$kernels" | tr '\n' ' ')"
check "linear layers with epilogues as on Hopper" backend_with EMULATOR_CAPABILITY=90 bf16 linear
check "... in FP32" backend_with EMULATOR_CAPABILITY=90 fp32 linear
check "linear layers where the library offers no epilogue" backend_with EMULATOR_REFUSE=epilogues bf16 linear
check "linear layers with own epilogues" backend_with TRAIN_GPT2_EPILOGUES=own fp32 linear

# ---- curves
speaks="--val-every 10 --val-tokens 100 --sample-every 20 --sample-tokens 30"
check "the CPU trains for 20 steps" run train_gpt2 cpu --steps 20 --save-every 10 $speaks
check "the CUDA program in FP32" run train_gpt2emu_fp32 fp32 --steps 20 --save-every 10 $speaks
check "... has the CPU's losses to 1e-5, and its data" near_run 1e-5 cpu fp32
said() { grep '"event":"sample"' "$dir/$1/metrics.jsonl"; }
speaks_alike() { same "$(said "$1")" "$(said "$2")"; }
check "... and writes the same text" speaks_alike cpu fp32
check "the CUDA program in bf16" run train_gpt2emu_bf16 bf16 --steps 20 --no-exact --save-every 10 $speaks
check "... has the CPU's losses to 2e-2, and its data" near_run 2e-2 cpu bf16

# ---- checkpoints go from one build to the other
last_loss() { sed -n 's/.*"event":"train".*"loss":\([^,]*\),.*/\1/p' "$dir/$1/metrics.jsonl" | tail -n 1; }
ends_like() { near "$(last_loss "$2")" "$(last_loss "$3")" "$1"; }
check "CUDA resumes from the CPU's checkpoint" run train_gpt2emu_fp32 taken --steps 20 --resume "$dir/cpu/step_00000010"
check "... and ends where the CPU did" ends_like 1e-5 taken cpu
check "the CPU resumes from CUDA's" run train_gpt2 back --steps 20 --resume "$dir/fp32/step_00000010"
check "... and ends where CUDA did" ends_like 1e-5 back fp32
check "bf16 resumes from its own" run train_gpt2emu_bf16 again --steps 20 --no-exact --resume "$dir/bf16/step_00000010"
check "... and ends where it had ended, to the last bit" ends_like 0 again bf16
check "... with the same weights and moments" same_files "$dir/again/step_00000020/optimizer.safetensors" \
    "$dir/bf16/step_00000020/optimizer.safetensors"

# ---- the same run: whatever the order of threads, blocks and streams
check "bf16 for 4 steps" run train_gpt2emu_bf16 four --steps 4 --recompute
for order in reversed random:7; do
    export EMULATOR_ORDER=$order
    check "bf16 with everything $order" run train_gpt2emu_bf16 $order --steps 4
    check "... is the same run to the last bit" same_run four $order
done
unset EMULATOR_ORDER

# ---- ... and on any number of ranks
if has_ranks "$build/train_gpt2emu_fp32"; then
    launcher=$ranks
    check "FP32 on 2 ranks, sums in float" run train_gpt2emu_fp32 two --steps 20 --no-exact $speaks
    check "... has the losses of one to 1e-5" near_run 1e-5 fp32 two
    check "2 ranks for 3 steps in micro-batches of one sequence" run train_gpt2emu_fp32 two-forward --steps 3 --batch 1 --no-exact
    for order in reversed random:3; do
        export EMULATOR_ORDER=$order
        check "... with everything $order" run train_gpt2emu_fp32 two-$order --steps 3 --batch 1 --no-exact
        check "... is the same run to the last bit" same_run two-forward two-$order
    done
    unset EMULATOR_ORDER
    for precision in fp32 bf16; do
        launcher=
        check "--exact in $precision on one rank" run train_gpt2emu_$precision exact-$precision --exact --batch 1 --steps 3
        launcher=$ranks
        check "... on two" run train_gpt2emu_$precision exact-two-$precision --exact --batch 1 --steps 3
        check "... is the same run to the last bit" same_run exact-$precision exact-two-$precision
        for file in model optimizer; do
            check "... and the same checkpoint ($file)" same_files "$dir/exact-$precision/step_00000003/$file.safetensors" \
                "$dir/exact-two-$precision/step_00000003/$file.safetensors"
        done
    done
else
    skip "no mpirun: runs on several ranks"
fi
launcher=

# ---- the real compiler, where it is
if [ -r "$build/cuda_bf16/ptxas.txt" ]; then
    for precision in bf16 fp32; do
        check "no kernel spills registers ($precision)" sh dev/registers.sh "$build/cuda_$precision/ptxas.txt"
        sed 's/^/  /' "$dir/said"
    done
    command -v nvidia-smi >/dev/null ||
        refuses 1 "no NVIDIA driver was found" "the real program says that too" "$build/train_gpt2cu_bf16"
else
    skip "nvcc was not found, or these are not the usual settings: no real kernels"
fi

finish cli_cuda
