#!/bin/sh
# mutate.sh: shows that the tests are sharp. dev/mutations.txt lists small wrongs; each is put into a
# copy of the program, built and tested, and must make a test fail. Prints who survived.
#   sh dev/mutate.sh          all of them
#   sh dev/mutate.sh gelu     those whose file or description has "gelu" in it
# Exit code 1 when one survives, no longer applies, or does not compile.
# JOBS: how many at a time. Those about ranks need Open MPI. The project's own files are never touched.

list=dev/mutations.txt

# Prints the N-th mutation's file and description, or with TEXT writes the mutated file to stdout.
# Exit code 3: the old text does not stand in the file exactly once.
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

# The programs of which one must notice what is wrong in a file: recorded values judge the model and the plain
# loops; recorded values and the plain loops judge the kernels of the CPU; the plain loops those of CUDA on the
# emulator.
tests_of() { # FILE
    case $1 in
    *gelu.cuh) echo build/backend_fp32 ;; # a wrong formula must show below bf16's rounding
    *.cu | *.cuh) echo build/backend_bf16 ;;
    llmc/eval/score.c) echo build/real_score_double ;;
    llmc/eval/examples.c) echo build/test_examples ;;
    llmc/settings/foreign_options.c) echo build/test_foreign_options ;;
    llmc/data/paths.c) echo build/test_stream ;;
    llmc/data/raw_tokens.c | llmc/data/shard.c | llmc/data/meta_pickle.c | llmc/files/file_kind.c)
        echo build/test_file_kinds ;;
    llmc/weights/*) echo build/test_weights ;;
    llmc/model/config.c) echo build/test_gpt2_double build/test_weights ;;
    llmc/checkpoint/checkpoint_list.c) echo build/test_checkpoint ;;
    llmc/plain/*) echo build/test_gpt2_plain_double ;;
    llmc/cpu/attention*) echo build/test_gpt2_double build/real_attention_double ;;
    llmc/cpu/layernorm.c) echo build/test_gpt2_double build/real_layernorm_double ;;
    llmc/cpu/embedding.c) echo build/test_gpt2_double build/real_embedding_double ;;
    llmc/cpu/classifier.c) echo build/test_gpt2_double build/real_classifier_double ;;
    llmc/cpu/linear.c | llmc/cpu/gemm.c | llmc/cpu/gelu.c) echo build/test_gpt2_double build/real_linear_double ;;
    *) echo build/test_gpt2_double ;;
    esac
}

# Runs TEST... up to the first that fails; 0 when none does.
run_tests() {
    for tests in "$@"; do
        OMP_NUM_THREADS=1 timeout 300 "$tests" >test.log 2>&1 || return
    done
}

# One mutation in a copy of the built tree. Prints a line that begins with what became of it.
# shellcheck disable=SC2046 # lists of programs
one() { # N
    title=$(mutation "$1")
    file=${title%%: *}
    copy=$scratch/$1
    cp -a "$scratch/built" "$copy" && cd "$copy" || exit 1
    if ! mutation "$1" "$file" >"$copy.text"; then
        echo "STALE     $title: the old text is not in the file exactly once"
    elif cp "$copy.text" "$file"; ! make -s CC="${CC:-cc}" $(tests_of "$file") >build.log 2>&1; then
        echo "BROKEN    $title: does not compile: $(grep -m 1 error build.log)"
    else
        run_tests $(tests_of "$file")
        code=$?
        failed=$(sed -n 's/^  FAILED \([a-z_0-9]*\):.*/\1/p; /^emulator: /p' test.log)
        if [ $code -eq 0 ]; then
            echo "SURVIVED  $title"
        else
            echo "caught    $title (${tests#build/}, $(echo "$failed" | grep -c .): $(echo "$failed" | head -n 1))"
        fi
    fi
    rm -rf "$copy" "$copy.text"
}

if [ "$1" = --one ]; then
    one "$2"
    exit
fi

cd "$(dirname "$0")/.." || exit 1
scratch=$(mktemp -d) || exit 1
export scratch
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM
mkdir "$scratch/built" && cp -R Makefile README.md LICENSE train_gpt2.c train_gpt2.cu llmc test dev "$scratch/built" || exit 1
echo "building and testing the program as it is"
for name in test_gpt2_double test_gpt2_plain_double backend_bf16 backend_fp32 \
    real_attention_double real_layernorm_double real_embedding_double real_classifier_double real_linear_double \
    real_score_double test_examples test_foreign_options test_stream test_file_kinds test_weights test_checkpoint; do
    tests=build/$name
    (cd "$scratch/built" && make -s CC="${CC:-cc}" "$tests" && "$tests" | tail -n 1 | grep ' 0 failed') || exit 1
done

count=$(grep -vc '^[-+#]\|^$' $list)
for n in $(seq 1 "$count"); do
    mutation "$n" | grep -qi -- "${1:-.}" && echo "$n"
done | xargs -P "${JOBS:-$(nproc)}" -I N sh "$PWD/dev/mutate.sh" --one N | tee "$scratch/results"

survived=$(grep -c '^SURVIVED' "$scratch/results")
unfit=$(grep -c '^STALE\|^BROKEN' "$scratch/results")
grep '^SURVIVED\|^STALE\|^BROKEN' "$scratch/results"
echo "$(grep -c . "$scratch/results") mutations: $survived survive, $unfit do not fit the code any more"
[ "$survived" -eq 0 ] && [ "$unfit" -eq 0 ]
