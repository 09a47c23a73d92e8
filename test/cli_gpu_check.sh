#!/bin/sh
# cli_gpu_check.sh: dev/gpu_check.sh passes in rehearsal on the emulator, and fails where something is wrong: a kernel
# that faults or spills, an error that only compute-sanitizer sees, a build error. Its tokens are as frequent as words.
. test/cli.sh
export OMP_NUM_THREADS=1 BUILD="$build" REHEARSE=1 PARTS SANITIZER=

if [ ! -x "$build/train_gpt2emu_bf16" ]; then
    skip "there is no C++ compiler for the emulator"
    finish cli_gpu_check
    exit
fi

stand_in() { # NAME BODY: a tool
    printf '#!/bin/sh\n%s\n' "$2" >"$dir/$1"
    chmod +x "$dir/$1"
}
stand_in make 'exit 0' # what is to be built has been built
stand_in broken 'echo "llmc/cuda/flash.cuh(1): error: expected a declaration"; exit 2'
# The tools are called as compute-sanitizer is: TOOL --tool CHECK --error-exitcode 9 PROGRAM...
stand_in clean 'shift 4; "$@"'
stand_in racy 'check=$2; shift 4; "$@"; [ $check != racecheck ] || { echo "========= ERROR SUMMARY: 1 error"; exit 9; }'
rehearse() { MAKE="$dir/${tool:-make}" sh dev/gpu_check.sh "$dir/report"; }
fails() { # PARTS TEXT: these parts fail, in a report that has TEXT
    PARTS=$1
    rehearse >"$dir/said" && return 1
    grep -q "$2" "$dir/report" || { tail -n 20 "$dir/report"; return 1; }
}

PARTS="system build registers bf16 curves throughput times sanitizer" SANITIZER="$dir/clean"
check "a rehearsal passes" says "==== all parts passed" rehearse
cp "$dir/report" "$dir/whole"
check "... with curves" grep -q "^step 1 cpu [0-9.]* fp32 [0-9.]* bf16 [0-9.]*$" "$dir/whole"
check "... and times" grep -q "^attention gradient .* ms" "$dir/whole"
tool=broken
check "a build error fails" fails "build" "==== failed: \[build\]"
check "... and is shown" grep -q "expected a declaration" "$dir/report"
tool=
SANITIZER="$dir/racy"
check "an error that compute-sanitizer finds fails" fails "sanitizer" "racecheck: exit code 9"
check "... by name" grep -q "==== failed: \[compute-sanitizer\]" "$dir/report"
SANITIZER=
export EMULATOR_FAULT=fail:100:0
check "a kernel that faults fails the kernels' tests" fails "bf16" "==== failed: \[kernel tests, bf16\]"
check "... the curves" fails "curves" "==== failed: \[curves"
check "... and the throughput" fails "throughput" "==== failed: \[throughput\]"
unset EMULATOR_FAULT
check "a part that does not exist fails" fails "curvs" "no part of that name: curvs"

# ---- what nvcc's assembler said: registers, and nothing in local memory
ptxas() { # STACK STORES [KERNEL REGISTERS ARCHITECTURE]
    cat >"$dir/ptxas.txt" <<END
ptxas info    : Compiling entry function '${3:-_Z3onePf}' for '${5:-sm_80}'
    $1 bytes stack frame, $2 bytes spill stores, 0 bytes spill loads
ptxas info    : Used ${4:-24} registers, used 0 barriers, 384 bytes cmem[0]
END
    sh dev/registers.sh "$dir/ptxas.txt"
}
check "a kernel without spills passes" says "sm_80" ptxas 0 0
check "one that spills does not" not ptxas 0 8
check "... nor one with a stack" not ptxas 16 0
: >"$dir/empty.txt"
check "attention's blocks on an SM are those of its registers" says ", 4 blocks an SM" ptxas 0 0 _Z28flash_backward_queries_kernelILi64EEvv 128 sm_90
check "... or of its shared memory" says ", 2 blocks an SM" ptxas 0 0 _Z28flash_backward_queries_kernelILi64EEvv 128 sm_89
check "... nor no kernel at all" not sh dev/registers.sh "$dir/empty.txt"

# ---- the tokens of the throughput
check "the tokens are written" sh -c "${CC:-cc} -o $dir/zipf dev/zipf_tokens.c -lm && $dir/zipf 50257 200000 $dir/tokens"
share() { # the most frequent id's, in percent of 200000
    od -An -v -tu2 -w2 "$dir/tokens" | sort | uniq -c | sort -rn | awk 'NR == 1 { print $1 / 2000 }'
}
between() { less "$1" "$2" && less "$2" "$3"; }
check "... and the most frequent has about 4 %" between 3 "$(share)" 5

# ---- the model of kernel times
model() { sh dev/gpu_model.sh "$@"; }
total() { model "$@" | awk '$1 == "micro-step" { print $NF }'; }
check "the model says that it is one" says "a model, not a measurement" model
check "... has the sum that was counted by hand for the first kernels" near "$(total KERNELS=first)" 134 0.02
check "... for llm.c with cuDNN" near "$(total KERNELS=cudnn)" 112 0.02
check "... and less for today's" less "$(total)" "$(total KERNELS=cudnn)"
check "half the batch takes half the time" near "$(total B=32)" "$(total) / 2" 0.03
check "a slower card takes longer" less "$(total B=16)" "$(total B=16 CARD=a100)"
refuses 2 "CARD is h200" "an unknown card is refused" model CARD=h300
refuses 2 "C = 64 NH" "... and a shape that attention does not have" model C=700
refuses 2 "D=7" "... and a setting that is none" model D=7

finish cli_gpu_check
