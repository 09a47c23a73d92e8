#!/bin/sh
# cli_gpu.sh: the CUDA program and its machine, on the emulator: which GPU a rank takes, what `plan` needs, peaks and the
# margin of memory; and nothing waits for ever for a GPU that hangs or fails, or for an exchange that does.
. test/cli.sh
export OMP_NUM_THREADS=1
awk 'BEGIN { for (i = 0; i < 700; i++) printf "%d squared is %d\n", i, i * i }' >"$dir/text"
short="--layers 2 --heads 1 --channels 64 --seq-len 24 --val-every 0 --sample-every 0 --log-every 0"
short="$short --data $dir/text --batch 3 --total-batch 96 --warmup 4 --lr 1e-3 --rank-timeout 0"
ranks="env ASAN_OPTIONS=detect_leaks=0 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --oversubscribe -np 2"

if [ ! -x "$build/train_gpt2emu_fp32" ]; then
    skip "there is no C++ compiler for the emulator"
    finish cli_gpu
    exit
fi

# ---- what cannot work
program=$build/train_gpt2emu_bf16
refuses 1 "no NVIDIA driver was found" "a machine without a driver" env EMULATOR_DEVICES=-1 "$program"
refuses 1 "no GPU is visible" "a machine without a GPU" env EMULATOR_DEVICES=0 "$program"
refuses 1 "needs 8.0 or newer" "a GPU that is too old" env EMULATOR_CAPABILITY=75 "$program"
export EMULATOR_FAULT=fail:100:0
refuses 1 "CUDA error 700 (an illegal memory access was encountered); start again with TRAIN_GPT2_SYNC=1" "a kernel that faults" \
    "$program" --out "$dir/none"
refuses 1 "_kernel: CUDA error 700" "... by its name with TRAIN_GPT2_SYNC=1" env TRAIN_GPT2_SYNC=1 "$program" --overwrite --out "$dir/none"
export EMULATOR_FAULT=hang:100:0
stuck() { # two signals end a run whose device hangs
    # shellcheck disable=SC2086 # a list
    "$program" $short --hang-timeout 0 --out "$dir/stuck" >"$dir/said" 2>&1 &
    stuck=$! tries=0
    until grep -q "(\* given by you)" "$dir/said" || [ $((tries += 1)) -gt 300 ]; do sleep 0.1; done
    sleep 2
    kill -TERM $stuck
    sleep 1
    kill -0 $stuck || return 1 # the first one waits for the end of the update
    kill -TERM $stuck
    wait $stuck
    [ $? -eq 143 ]
}
check "a run whose device hangs ends at the second SIGTERM" stuck
unset EMULATOR_FAULT

# ---- without a device
# shellcheck disable=SC2086 # lists
planned() { env EMULATOR_DEVICES="$1" "$program" plan $short --ranks 16; }
check "a plan needs no GPU" says "no GPU on this machine, to plan only" planned 0
check "... and no driver" says "memory  " planned -1
check "... and no more of them than there are" says "over 16 ranks" planned 1

# ---- peaks, and the margin of memory
peak() { says "peak $1 TFLOP/s" env EMULATOR_NAME="$2" EMULATOR_SMS="$3" EMULATOR_CAPABILITY="$4" EMULATOR_CLOCK="$5" "$program" plan; }
check "the peak of an H100 is the vendor's" peak 989 "NVIDIA H100 80GB HBM3" 132 90 1980000
check "... of an H100 NVL its own" peak 835 "NVIDIA H100 NVL" 132 90 1785000
check "... of a quarter of an A100 a quarter" peak 81 "NVIDIA A100-SXM4-40GB MIG 2g.10gb" 28 80 1410000
check "... of an unknown card its multiprocessors and clock" peak 35 "NVIDIA GeForce RTX 3050 Ti" 40 86 1700000
fits_in() { says "trained 1 update" env EMULATOR_MEMORY="$1" "$program" $short --steps 1 --overwrite --out "$dir/fits"; }
check "a small run fits into 0.9 GB" fits_in 9e8
refuses 1 "are needed and 0.0" "... not into 0.75 GB: the libraries' share is kept" env EMULATOR_MEMORY=7.5e8 "$program" $short --out "$dir/none"
refuses 1 "are needed and" "too little memory, with the figures" env EMULATOR_MEMORY=4e7 "$program" --out "$dir/none"

if ! has_ranks "$build/train_gpt2emu_fp32"; then
    skip "no mpirun: runs on several ranks"
    finish cli_gpu
    exit
fi
export EMULATOR_DEVICES=1
# shellcheck disable=SC2086 # a list
ranks_refused() { ! $ranks "$build/train_gpt2emu_fp32" $short >"$dir/ranks" 2>&1 && same "$(grep -c '^train_gpt2: ' "$dir/ranks")" 1; }
check "more ranks than GPUs are refused in one line" ranks_refused
check "... that names the ranks and the GPU" grep -q "ranks 0 and 1 on .* have the same GPU, the one at 0000:10:00.0;" "$dir/ranks"
unset EMULATOR_DEVICES

# ---- which GPU is mine: launchers that show each rank one GPU, some, or a slice of one
printf 'eval "export CUDA_VISIBLE_DEVICES=$1"\nshift\nexec "$@"\n' >"$dir/bind"
# shellcheck disable=SC2086 # lists
seen() { # CARDS: two ranks run, each with CUDA_VISIBLE_DEVICES from CARDS, in which $r is the rank
    $ranks sh "$dir/bind" "$1" "$build/train_gpt2emu_fp32" $short --steps 1 --overwrite --out "$dir/seen" >"$dir/ranks" 2>&1 &&
        grep -q "trained 1 update" "$dir/ranks"
}
said_gpus() { grep -q "$1; ranks here: $2, float32; 2 ranks" "$dir/ranks"; }
r='$((OMPI_COMM_WORLD_RANK'
check "ranks that see one GPU each are served" seen "$r + 3))"
check "... and the table names both" said_gpus "device 0 of 1 at 0000:13:00.0" "0000:13:00.0, 0000:14:00.0"
check "ranks that see one each by its UUID" seen "GPU-0$r * 2))"
check "... likewise" said_gpus "device 0 of 1 at 0000:10:00.0" "0000:10:00.0, 0000:12:00.0"
check "ranks that see two each" seen "$r * 2)),$r * 2 + 1))"
check "... take the one of their local rank" said_gpus "device 0 of 2 at 0000:10:00.0" "0000:10:00.0, 0000:13:00.0"
export EMULATOR_MIG=1
check "ranks that see a slice of one card each" seen "MIG-5-$r))"
check "... have GPUs of their own" said_gpus "device 0 of 1 at 0000:15:00.0" "0000:15:00.0, 0000:15:00.0"
slice_refused() { ! seen MIG-5-1 && grep -q "ranks 0 and 1 on .* have the same GPU, the one at 0000:15:00.0;" "$dir/ranks"; }
check "ranks that see the same slice are refused" slice_refused
unset EMULATOR_MIG
serves_all() { seen 6,2,9 && said_gpus "device 0 of 2 at 0000:16:00.0" "0000:16:00.0, 0000:12:00.0"; }
check "a list in another order, that ends at a GPU that is not there" serves_all
same_refused() { ! seen 4 && grep -q "have the same GPU, the one at 0000:14:00.0;" "$dir/ranks"; }
check "ranks that all see the same one are refused" same_refused

# ---- nothing waits for ever: a GPU that hangs or fails, and an exchange that does
ends_with() { # TEXT FAULT OPTIONS...: two ranks end with 1 and one line that has TEXT
    wanted=$1 fault=$2
    shift 2
    # shellcheck disable=SC2086 # lists
    timeout 120 $ranks env "$fault" "$build/train_gpt2emu_fp32" $short --steps 5 --overwrite --out "$dir/ends" "$@" >"$dir/ranks" 2>&1
    code=$?
    [ $code -eq 1 ] && [ "$(grep -c '^train_gpt2: ' "$dir/ranks")" -eq 1 ] && grep -q "$wanted" "$dir/ranks" && return
    echo "exit code $code"
    grep '^train_gpt2' "$dir/ranks"
    return 1
}
check "a rank whose GPU hangs is named, with what it was doing" ends_with \
    "rank 1 (process .* hangs: while waiting for its GPU it has made no progress" EMULATOR_FAULT=hang:200:1 --hang-timeout 3
check "a kernel that faults is an error at the next wait, which says how to find it" ends_with \
    "rank 1: the GPU at 0000:11:00.0 failed: CUDA error 700 .*TRAIN_GPT2_SYNC=1" EMULATOR_FAULT=fail:200:1
check "an exchange that hangs ends the run" ends_with \
    "hangs: while exchanging gradients (NCCL) it has made no progress" EMULATOR_NCCL_FAULT=hang:5:1 --hang-timeout 3
check "... as does one in which a rank's call differs" ends_with \
    "hangs: while exchanging gradients (NCCL) it has made no progress" EMULATOR_NCCL_FAULT=mismatch:5:1 --hang-timeout 3
check "an error that NCCL finds in the background ends the run" ends_with \
    "rank 1: the exchange of gradients failed: NCCL: remote process exited" EMULATOR_NCCL_FAULT=async:5:1 --hang-timeout 0
check "a peer that is lost in an exchange is named" ends_with \
    "rank 1 (process .* has sent no heartbeat for 2 s" EMULATOR_NCCL_FAULT=lost:5:1 --rank-timeout 2
# shellcheck disable=SC2086 # lists
slow_but_sure() { # an update's wait takes 10 s, and no part of it half of that
    timeout 200 $ranks env EMULATOR_FAULT=slow:1:1 "$build/train_gpt2emu_fp32" --layers 8 ${short#--layers 2} --steps 2 \
        --hang-timeout 6 --overwrite --out "$dir/slow" >"$dir/ranks" 2>&1 && grep -q "trained 2 updates" "$dir/ranks"
}
check "a device that is slow but makes progress does not hang" slow_but_sure

finish cli_gpu
