#!/bin/sh
# cli_bits.sh: one command has one result, bit for bit, whatever compiler and instruction set built the
# program, as long as there is fused multiply-add. The default run's result is known here.
. test/cli.sh

text=$dir/text.txt
seq 4000 >"$text"

# ---- what a run came to
data_of() { # FILE.safetensors: what follows the header, whose length stands in the first 8 bytes
    tail -c "+$(($(od -An -t u8 -N 8 "$1") + 9))" "$1"
}
sums() { # DIRECTORY: of the weights and the moments in its checkpoint
    for file in model optimizer; do data_of "$dir/$1"/step_*/$file.safetensors | cksum; done
}
train() { # DIRECTORY PROGRAM... OPTION...
    run=$1
    shift
    "$@" --data "$text" --out "$dir/$run" --threads 2 --log-every 0 >"$dir/said" 2>&1 </dev/null &&
        grep -q 'trained . updates' "$dir/said"
}
# Sizes that are not a multiple of any vector; a short last sequence; every kind of record.
odd="--layers 2 --heads 3 --channels 51 --seq-len 37 --batch 3 --total-batch 370 --steps 5 --warmup 2
     --val-every 2 --sample-every 5 --sample-tokens 40 --top-k 20 --clip 0.5"
same() { # two runs have the same weights, moments and records
    timeless "$dir/$1/metrics.jsonl" >"$dir/a" && timeless "$dir/$2/metrics.jsonl" >"$dir/b" &&
        [ -s "$dir/a" ] && cmp "$dir/a" "$dir/b" && [ "$(sums "$1")" = "$(sums "$2")" ]
}
known() { # DIRECTORY SUMS: the sums are these
    sums "$1" >"$dir/said"
    [ "$(cat "$dir/said")" = "$2" ]
}

# cksum of the weights and the moments. A change that is meant to change them changes these.
default_run="1586284819 3337216
4222445764 6674432"
odd_run="2905748280 315180
1901103408 630360"

# shellcheck disable=SC2086 # a list
check "the program trains" train odd "$program" $odd
check "... with default settings too" train default "$program" --steps 3
if grep -qE 'float32, (AVX-512|AVX2|NEON)' "$dir/said"; then
    check "the default run's weights and moments are those of every machine" known default "$default_run"
    check "... and so are those of odd sizes" known odd "$odd_run"
else
    skip "built without fused multiply-add: the bits are this machine's own"
fi

# ---- other builds, beside the usual one
compiler() { command -v "$1" >/dev/null 2>&1 && echo 'int main(void) { return 0; }' | "$@" -x c - -o "$dir/tried" 2>/dev/null; }
has() { # FLAG...: of the processor
    for flag in "$@"; do grep -qw "$flag" /proc/cpuinfo 2>/dev/null || return 1; done
}
build_and_compare() { # NAME "RUNNER" CC ARCH...
    name=$1 runner=$2 cc=$3
    shift 3
    if ! compiler "$cc" "$@"; then
        skip "$name: no $cc that knows $*"
        return
    fi
    check "$name: builds" make -s -j2 BUILD="$dir/$name" CC="$cc" ARCH="$*" OPTIMIZE=-O2 MPI=0 "$dir/$name/train_gpt2"
    # shellcheck disable=SC2086 # lists
    check "$name: trains" train "$name.odd" $runner "$dir/$name/train_gpt2" $odd
    check "$name: the same weights, moments and records" same odd "$name.odd"
}

if [ "${build##*/}" = build ]; then # once, not for every set of other settings
    unset MAKEFLAGS MAKELEVEL MFLAGS
    case $(uname -m) in
    x86_64)
        if has avx2 fma; then
            build_and_compare gcc-v3 "" gcc -march=x86-64-v3
            build_and_compare gcc-zen3 "" gcc -march=x86-64-v3 -mtune=znver3
            build_and_compare gcc-haswell "" gcc -march=haswell
            build_and_compare clang-v3 "" clang -march=x86-64-v3
        else
            skip "this processor has no AVX2: x86-64-v3"
        fi
        if has avx512f avx512bw avx512dq avx512vl avx512cd; then
            build_and_compare gcc-v4 "" gcc -march=x86-64-v4
            build_and_compare clang-v4 "" clang -march=x86-64-v4 -mprefer-vector-width=512
        else
            skip "this processor has no AVX-512: x86-64-v4"
        fi
        # One program with kernels for three levels; TRAIN_GPT2_ARCH hides what this processor has beyond one of them.
        if compiler gcc -march=x86-64-v4; then
            check "portable: builds" make -s -j2 BUILD="$dir/portable" CC=gcc ARCH=portable OPTIMIZE=-O2 MPI=0 "$dir/portable/train_gpt2"
            portable=$dir/portable/train_gpt2
            runs_on() { # LEVEL KERNELS
                prints "^device +CPU, $2, float32" env TRAIN_GPT2_ARCH="x86-64-$1" "$portable" --version
            }
            check "portable: where there is no AVX it has other kernels" runs_on v2 "no fused multiply-add"
            check "... which train" train portable.v2 env TRAIN_GPT2_ARCH=x86-64-v2 "$portable" $odd
            if has avx2 fma; then
                check "portable: with AVX2 it uses that" runs_on v3 AVX2
                check "... and trains" train portable.v3 env TRAIN_GPT2_ARCH=x86-64-v3 "$portable" $odd
                check "... to the same weights, moments and records" same odd portable.v3
            fi
            if has avx512f avx512bw avx512dq avx512vl avx512cd; then
                check "portable: with AVX-512 it uses that" runs_on v4 AVX-512
                check "... of itself" prints "^device +CPU, AVX-512, float32" "$portable" --version
                check "... and trains" train portable.v4 "$portable" $odd
                check "... to the same weights, moments and records" same odd portable.v4
            fi
            refuses 1 'built for a processor with ssse3, which this one does not have' \
                "portable: a processor below all levels gets a line" env TRAIN_GPT2_ARCH=x86-64-v1 "$portable" --version
            if command -v qemu-x86_64 >/dev/null 2>&1; then
                # (started again, it would run on the processor itself)
                check "portable: runs on a processor of 2008" prints "^device +CPU, no fused multiply-add" \
                    env OMP_WAIT_POLICY=passive qemu-x86_64 -cpu Nehalem "$portable" --version
            else
                skip "no qemu-x86_64: an old processor"
            fi
        else
            skip "no gcc that knows x86-64-v4: ARCH=portable"
        fi
        if command -v qemu-aarch64 >/dev/null 2>&1; then
            build_and_compare arm "qemu-aarch64 -L /usr/aarch64-linux-gnu" aarch64-linux-gnu-gcc -march=armv8-a
        else
            skip "no qemu-aarch64: ARM"
        fi
        ;;
    *) build_and_compare clang "" clang -march=native ;;
    esac
fi

finish cli_bits
