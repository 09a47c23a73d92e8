#!/bin/sh
# gpu_check.sh [OUT]: the CUDA build's evidence on a machine with a GPU, in one command and under 8 minutes, into
# one text file (default build/gpu_check.txt): build, every kernel's tests in both precisions, compute-sanitizer on a
# short run, 20 steps beside the CPU's losses, 124M throughput and memory, time per operation.
#   REHEARSE=1 sh dev/gpu_check.sh    the same on the emulator with small sizes, without a GPU
#   PARTS="build sanitizer"           only these: system build registers bf16 fp32 curves throughput times sanitizer
#   SANITIZER=, MAKE=, BUILD=         another compute-sanitizer, make, build folder
# Exit code 1 when a part fails; the file names it. test/cli_gpu_check.sh shows that faults in each are found.
cd "$(dirname "$0")/.." || exit 1
build=${BUILD:-build} make=${MAKE:-make}
out=${1:-$build/gpu_check.txt}
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
failed='' count=0
jobs=$(nproc)
if [ -n "$REHEARSE" ]; then
    device=$build/train_gpt2emu tests=$build/backend bench=$build/bench_emulated tool=$SANITIZER vocab=300 tokens=2000
    big="--layers 1 --channels 64 --heads 1 --seq-len 32" batches=2 total=128 steps=2 bench_shape='1 32 64 1 300 1'
else
    device=$build/train_gpt2cu tests=$build/device bench=$build/bench_device
    tool=${SANITIZER:-$(command -v compute-sanitizer)} vocab=50257 tokens=12000000
    big="--model gpt2" batches='64 32 16 8 4' total=524288 steps=20 bench_shape=''
fi

# part KEY NAME COMMAND...: its output and how long it took go to the file. Its exit code counts: a command whose
# output is cut must not stand in a pipe.
part() {
    case " ${PARTS:-$1} " in
    *" $1 "*) ;;
    *) return ;;
    esac
    title=$2 start=$(date +%s) count=$((count + 1))
    shift 2
    printf '\n==== %s\n' "$title"
    "$@" 2>&1
    code=$?
    [ $code -eq 0 ] || { failed="$failed [$title]"; echo "FAILED ($code)"; }
    echo "$(($(date +%s) - start)) s"
}

# last N COMMAND...: its last N lines, and its exit code.
last() {
    lines=$1
    shift
    "$@" >"$dir/last" 2>&1
    code=$?
    tail -n "$lines" "$dir/last"
    return $code
}

system() {
    date -u '+%Y-%m-%d %H:%M UTC'
    git rev-parse HEAD 2>/dev/null
    nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.max.sm,power.limit --format=csv 2>/dev/null
    nvcc --version 2>/dev/null | tail -n 2
}

build() {
    last 5 "$make" -j"$jobs" BUILD="$build" "$build/train_gpt2" "${device}_bf16" "${device}_fp32" "${tests}_bf16" "${tests}_fp32" \
        "${bench}_bf16"
}

# What ptxas prints about every kernel: registers, shared memory, and spills, of which there are none.
registers() {
    spilled=0
    for file in "$build"/cuda_*/ptxas.txt; do
        [ -r "$file" ] || continue
        echo "$file"
        sh dev/registers.sh "$file" || spilled=1
    done
    return $spilled
}

small="--heads 2 --save-every 0 --val-every 0 --sample-every 0 --log-every 0 --batch 4 --total-batch 512 --steps $steps"

train() { # PROGRAM NAME OPTIONS...
    program=$1 name=$2
    shift 2
    "$program" --out "$dir/$name" "$@" >"$dir/$name.out" 2>&1 || { tail -n 5 "$dir/$name.out"; return 1; }
}

losses() { sed -n 's/.*"event":"train","step":\([0-9]*\),.*"loss":\([^,]*\),.*/\1 \2/p' "$dir/$1/metrics.jsonl"; }

# Step, and the losses of the CPU and of CUDA in both precisions; fails where they lie apart.
# shellcheck disable=SC2086 # $small is a list
curves() {
    train "$build/train_gpt2" cpu $small && train ${device}_fp32 fp32 $small && train ${device}_bf16 bf16 $small || return 1
    losses fp32 >"$dir/1" && losses bf16 >"$dir/2"
    losses cpu | paste -d ' ' - "$dir/1" "$dir/2" | awk '
        { print "step", $1, "cpu", $2, "fp32", $4, "bf16", $6 }
        function apart(a, b) { return a > b ? (a - b) / b : (b - a) / b }
        !(apart($4, $2) < 1e-4) || !(apart($6, $2) < 3e-2) { bad = 1 }
        END { exit bad || NR == 0 }'
}

sanitizer() {
    [ -n "$tool" ] || { echo "no compute-sanitizer here"; return 0; }
    errors=0
    for check in memcheck racecheck initcheck synccheck; do
        last 3 timeout 120 "$tool" --tool $check --error-exitcode 9 "${device}_bf16" --out "$dir/$check" --layers 1 --channels 64 \
            --heads 1 --seq-len 48 --batch 2 --total-batch 192 --steps 2 --val-every 0 --sample-every 0 --save-every 0 && continue
        echo "$check: exit code $code"
        errors=1
    done
    return $errors
}

# The largest batch that fits; the last steps' speed (the first ones load kernels).
# shellcheck disable=SC2086
throughput() {
    "${CC:-cc}" -O2 -o "$dir/zipf" dev/zipf_tokens.c -lm && "$dir/zipf" $vocab $tokens "$dir/zipf.bin" || return 1
    for batch in $batches; do
        (while sleep 1; do nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits; done) >"$dir/memory" 2>/dev/null &
        watch=$!
        train ${device}_bf16 big$batch $big --data "$dir/zipf.bin" --data-type uint16 --vocab $vocab --batch "$batch" \
            --total-batch $total --steps $steps --val-every 0 --sample-every 0 --save-every 0 --log-every 1
        code=$?
        kill $watch
        [ $code -eq 0 ] && break
    done
    [ $code -eq 0 ] || return 1
    echo "batch $batch; peak memory $(sort -n "$dir/memory" | tail -n 1) MiB"
    tail -n 8 "$dir/big$batch.out"
}

{
    part system "machine" system
    part build "build" build
    part registers "registers and shared memory" registers
    part bf16 "kernel tests, bf16" ${tests}_bf16
    part fp32 "kernel tests, FP32" ${tests}_fp32
    part curves "curves beside the CPU's" curves
    part throughput "throughput" throughput
    # shellcheck disable=SC2086
    part times "time per operation" ${bench}_bf16 $bench_shape
    part sanitizer "compute-sanitizer" sanitizer
    [ $count -gt 0 ] || failed=" [no part of that name: $PARTS]"
    if [ -n "$failed" ]; then printf '\n==== failed:%s\n' "$failed"; else printf '\n==== all parts passed\n'; fi
} >"$out"
tail -n 1 "$out"
[ -z "$failed" ] # braces, not parentheses, around the parts: the list of failures is this shell's
