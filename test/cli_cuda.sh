#!/bin/sh
# cli_cuda.sh: the CUDA program on the emulator is the program: its curves lie on the CPU's, a run is the same
# run on any number of ranks, checkpoints go back and forth, and what cannot work says so in one line.
. test/cli.sh
shape="--layers 2 --heads 1 --channels 64 --seq-len 24 --val-every 0 --sample-every 0 --log-every 0"
short="$shape --batch 3 --total-batch 192 --warmup 2 --lr 1e-2 --rank-timeout 0"
run() { # PROGRAM NAME OPTIONS...
    binary=$1 name=$2
    shift 2
    # shellcheck disable=SC2086 # lists
    ${launcher-} "$build/$binary" $short --out "$dir/$name" "$@" >"$dir/$name.out" 2>&1 || {
        cat "$dir/$name.out"
        return 1
    }
}
ranks="env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMP_NUM_THREADS=1 mpirun --oversubscribe -np 2"
near() { sh dev/compare_runs -t "$1" "$dir/$2" "$dir/$3"; }
same() { sh dev/compare_runs "$dir/$1" "$dir/$2"; }

if [ ! -x "$build/train_gpt2emu_fp32" ]; then
    skip "there is no C++ compiler for the emulator"
    finish cli_cuda
    exit
fi

# ---- every kernel was executed, in every order
kernels=$(sed -n '/__global__/,/(/s/.*[ *]\([a-z_]*_kernel\)(.*/\1/p' llmc/cuda/*.cuh | sort)
executed() { # KERNEL: whether the backend's tests ran it in all three orders
    [ "$(sed -n "s/^(*$1[^ ]* //p" "$dir/kernels" | sort -u | wc -l)" -eq 3 ]
}
for precision in bf16 fp32; do
    check "all kernels pass their tests ($precision)" env EMULATOR_KERNELS="$dir/kernels" "$build/backend_$precision"
done
for kernel in $kernels; do
    check "$kernel ran forward, reversed and in random order" executed "$kernel"
done
echo "  kernels: $(echo "$kernels" | tr '\n' ' ')"
check "linear layers with epilogues as on Hopper" env EMULATOR_CAPABILITY=90 "$build/backend_bf16" linear
check "... in FP32" env EMULATOR_CAPABILITY=90 "$build/backend_fp32" linear
check "linear layers where the library offers no epilogue" env EMULATOR_REFUSE=epilogues "$build/backend_bf16" linear
check "linear layers with own epilogues" env TRAIN_GPT2_EPILOGUES=own "$build/backend_fp32" linear

# ---- curves
check "the CPU trains for 20 steps" run train_gpt2 cpu --steps 20
check "the CUDA program in FP32" run train_gpt2emu_fp32 fp32 --steps 20
check "... has the CPU's losses to 1e-5 and its data" near 1e-5 cpu fp32
check "the CUDA program in bf16" run train_gpt2emu_bf16 bf16 --steps 20
check "... has the CPU's losses to 2e-2 and its data" near 2e-2 cpu bf16
for order in reversed random:1; do
    check "bf16, threads and blocks $order" env EMULATOR_ORDER=$order sh -c ". test/cli.sh; :"
done

finish cli_cuda
