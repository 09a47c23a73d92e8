#!/bin/sh
# mutate.sh: shows that the tests are sharp. dev/mutations.txt lists small faults; each is put into a
# copy of the program, built and tested, and must make a test fail. Prints the survivors.
#   sh dev/mutate.sh          all of them
#   sh dev/mutate.sh gelu     those whose file or description has "gelu" in it
# Exit code 1 when one survives, no longer applies, or does not compile.
# JOBS: how many at a time (as many as there are cores). Those about ranks need Open MPI. The project's own files are
# never touched.

list=${scratch:+$scratch/}dev/mutations.txt # of a running mutate.sh, which must not see it change

# Prints the N-th mutation's file and description, or with TEXT writes the mutated file to stdout.
# Exit code 3: the old text is not in the file exactly once.
mutation() { # N [TEXT]
    awk -v wanted="$1" -v path="$2" '
        /^#/ || /^$/ { next }
        /^[-+] / { if (n == wanted) { edits += /^-/; part[edits, /^-/ ? "old" : "new"] = substr($0, 3) } next }
        { n++; if (n == wanted) title = $0 }
        END {
            if (path == "") { print title; exit }
            while ((getline line < path) > 0) text = text line "\n"
            for (i = 1; i <= edits; i++) {
                at = index(text, part[i, "old"])
                rest = substr(text, at + length(part[i, "old"]))
                if (!at || index(rest, part[i, "old"])) exit 3
                text = substr(text, 1, at - 1) part[i, "new"] rest
            }
            printf "%s", text
            if (!edits) exit 3
        }' "$list"
}

# The tests that must notice what is wrong in a file, those that touch it first: programs, and scripts by their
# path. Recorded values test the model and the plain loops; recorded values and the plain loops test the kernels
# of the CPU; the plain loops test those of CUDA on the emulator; all else is tested by the programs that include its
# header, and by the scripts of its folder.
tests_of() { # FILE
    case $1 in
    *gelu.cuh) echo build/backend_fp32 ;; # a wrong formula must show below bf16's rounding
    test/emulator/* | *tensor_core.cuh) echo build/test_emulator build/backend_bf16 ;;
    *gpu.cuh | *wait.cuh) echo test/cli_gpu.sh ;;
    *gradient_reduction.cuh) echo build/backend_bf16 test/cli_gpu.sh ;;
    *.cu | *.cuh) echo build/backend_bf16 ;;
    llmc/eval/score.c) echo build/real_score_double ;;
    llmc/data/paths.c) echo build/test_stream ;;
    llmc/text/* | llmc/files/byte_stream.c | llmc/data/shard_writer.c) echo build/test_tokenizer build/test_documents ;;
    llmc/data/raw_tokens.c | llmc/data/shard.c | llmc/data/meta_pickle.c | llmc/files/file_kind.c)
        including "$1"
        echo build/test_file_kinds ;;
    llmc/weights/*)
        including "$1"
        echo build/test_weights ;;
    llmc/model/config.c) echo build/test_gpt2_double build/test_weights ;;
    llmc/plain/*) echo build/test_gpt2_plain_double ;;
    llmc/cpu/attention*) echo build/test_gpt2_double build/real_attention_double ;;
    llmc/cpu/layernorm.c) echo build/test_gpt2_double build/real_layernorm_double ;;
    llmc/cpu/embedding.c) echo build/test_gpt2_double build/real_embedding_double ;;
    llmc/cpu/classifier.c) echo build/test_gpt2_double build/real_classifier_double ;;
    llmc/cpu/linear.c | llmc/cpu/gemm.c | llmc/cpu/gelu.c) echo build/test_gpt2_double build/real_linear_double ;;
    llmc/cpu/pack.h) echo build/real_linear_double build/real_linear_float ;; # in double no panel is narrower than a vector
    llmc/cpu/* | llmc/model/* | llmc/optimizer/* | train_gpt2.c) echo build/test_gpt2_double ;;
    *) including "$1" ;;
    esac
    case $1 in
    train_gpt2.c | llmc/train/* | llmc/checkpoint/* | llmc/log/*)
        echo test/cli_settings.sh test/cli_train.sh test/cli_resume.sh ;;
    llmc/base/start.c) echo test/cli_terminal.sh ;;
    llmc/base/processor*) echo test/cli_build.sh test/cli_bits.sh ;;
    llmc/commands/* | llmc/weights/* | llmc/eval/* | llmc/base/*) echo test/cli_commands.sh test/cli_train.sh ;;
    llmc/settings/*) echo test/cli_settings.sh test/cli_train.sh ;;
    llmc/text/* | llmc/data/tokenize.c | llmc/data/shard_writer.c) echo test/cli_text.sh test/cli_tokenize.sh ;;
    llmc/data/shard_scan.c | llmc/data/stream.c) echo build/test_shard build/test_stream test/cli_identity.sh ;;
    llmc/data/* | llmc/files/*) echo test/cli_train.sh test/cli_commands.sh ;;
    llmc/ranks/heartbeat.c | llmc/ranks/watchdog.c) echo test/cli_watchdog.sh test/cli_gpu.sh ;;
    llmc/ranks/*) echo test/cli_ranks.sh test/cli_terminal.sh ;;
    esac
}

# The test programs that include a file's header, the more special ones first.
including() { # FILE
    header=${1#llmc/}
    for test in $(grep -l "llmc/${header%.[ch]}.h\"" test/test_*.c | xargs grep -Hc '#include' /dev/null | sort -t: -k2n | cut -d: -f1); do
        [ "$test" = /dev/null ] || program_of "$test"
    done
}
program_of() { # test/test_NAME.c
    name=${1##*/}
    echo "build/${name%.c}"
}

# What is tried when none of these notices.
all_tests() {
    for test in test/test_*.c; do program_of "$test"; done
    echo build/test_gpt2_double
    for name in train commands resume settings files says text ranks; do echo "test/cli_$name.sh"; done
}

# What must be built for TEST...
needs() {
    for test in "$@"; do
        case $test in
        test/cli_gpu.sh) printf '%s\n' build/train_gpt2 build/train_gpt2emu_bf16 build/train_gpt2emu_fp32 ;;
        *.sh) printf '%s\n' build/train_gpt2 build/train_gpt2_alone build/train_gpt2_plain build/make_data build/http_server \
            $([ "$(uname)" != Linux ] || echo build/fault_shim.so build/strangers) ;;
        *) echo "$test" ;;
        esac
    done | sort -u
}

# Runs TEST... up to the first that fails, and that up to its first failure; 0 when none does.
run_tests() {
    for tests in "$@"; do
        case $tests in
        *.sh) OMP_NUM_THREADS=1 CLI_FIRST=1 timeout 300 sh "$tests" >test.log 2>&1 || return ;;
        *) OMP_NUM_THREADS=1 TEST_FIRST=1 timeout 300 "$tests" >test.log 2>&1 || return ;;
        esac
    done
}

# A built tree that no other mutation uses now: each worker keeps one, in which only what a mutation touches is
# built again. Prints it.
take_tree() {
    for slot in $(seq 1 64); do
        mkdir "$scratch/tree$slot.taken" 2>/dev/null || continue
        [ -d "$scratch/tree$slot" ] || cp -a "$scratch/built" "$scratch/tree$slot" || exit 1
        echo "$scratch/tree$slot"
        return
    done
}

# One mutation. Prints a line that begins with what became of it.
# shellcheck disable=SC2046 # lists of programs
one() { # N
    title=$(mutation "$1")
    file=${title%%: *}
    tree=$(take_tree)
    cd "$tree" || exit 1
    if ! mutation "$1" "$file" >"$tree.text"; then
        echo "STALE     $title: the old text is not in the file exactly once"
    elif cp "$tree.text" "$file"; ! make -s CC="${CC:-cc}" $(needs $(tests_of "$file")) >build.log 2>&1; then
        echo "BROKEN    $title: does not compile: $(grep -m 1 error build.log)"
    elif run_tests $(tests_of "$file") && { make -s CC="${CC:-cc}" $(needs $(all_tests)) >build.log 2>&1; run_tests $(all_tests); }; then
        echo "SURVIVED  $title"
    else
        failed=$(sed -n 's/^  FAILED:* \([^:]*\).*/\1/p; /^emulator: /p' test.log)
        echo "caught    $title (${tests##*/}: $(echo "$failed" | head -n 1))"
    fi
    cp "$scratch/built/$file" "$file" # newer than what was made of the mutation
    rm -rf "$tree.taken"
}

if [ "$1" = --one ]; then
    one "$2"
    exit
fi

cd "$(dirname "$0")/.." || exit 1
scratch=$(mktemp -d) || exit 1
export scratch OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM
mkdir "$scratch/dev" "$scratch/built" && cp $list "$scratch/dev" && cp -R Makefile README* LICENSE train_gpt2.c train_gpt2.cu llmc test dev "$scratch/built" || exit 1

count=$(grep -vc '^[-+#]\|^$' $list)
for n in $(seq 1 "$count"); do
    mutation "$n" | grep -qi -- "${1:-.}" && echo "$n"
done >"$scratch/chosen"

echo "building and testing the program as it is"
while read -r n; do
    title=$(mutation "$n")
    tests_of "${title%%: *}"
done <"$scratch/chosen" | tr ' ' '\n' | sort -u >"$scratch/tests"
# shellcheck disable=SC2046 # lists of programs
(
    cd "$scratch/built" || exit 1
    make -s -j"${JOBS:-$(nproc)}" CC="${CC:-cc}" $(needs $(cat "$scratch/tests")) >build.log 2>&1 ||
        { cat build.log; exit 1; }
    run_tests $(cat "$scratch/tests") || { tail test.log; echo "$tests fails without any mutation"; exit 1; }
) || exit 1

xargs -P "${JOBS:-$(nproc)}" -I N sh "$PWD/dev/mutate.sh" --one N <"$scratch/chosen" | tee "$scratch/results"

survived=$(grep -c '^SURVIVED' "$scratch/results")
unfit=$(grep -c '^STALE\|^BROKEN' "$scratch/results")
grep '^SURVIVED\|^STALE\|^BROKEN' "$scratch/results"
echo "$(grep -c . "$scratch/results") mutations: $survived survive, $unfit do not fit the code any more"
[ "$survived" -eq 0 ] && [ "$unfit" -eq 0 ]
