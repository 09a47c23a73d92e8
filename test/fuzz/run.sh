#!/bin/sh
# run.sh [READER]...: libFuzzer on every reader of readers.c, or on those that are named: FUZZ_SECONDS (60) each, or
# FUZZ_RUNS executions, under the address and undefined-behaviour sanitizers. An input that makes a reader crash,
# hang, end in a way that a bad file may not, or take more memory than its bytes justify is kept in build/fuzz/ and
# its name said. What was found interesting is kept too, and is where the next run starts.
build=build/fuzz
${MAKE:-make} -s BUILD=$build CC=clang SANITIZE=address,undefined OPENMP=0 MPI=0 OPTIMIZE='-O2 -g' \
    CFLAGS='-fsanitize=fuzzer-no-link -include test/fuzz/track.h' $build/fuzzer $build/fuzz_seeds || {
    echo "fuzz: needs clang with its libFuzzer (apt install clang)"
    exit 1
}
$build/fuzz_seeds --make $build/seeds || exit 1
[ $# -gt 0 ] || set -- $(ls $build/seeds)
failed=0 limit=-max_total_time=${FUZZ_SECONDS:-60}
[ -z "${FUZZ_RUNS:-}" ] || limit=-runs=$FUZZ_RUNS
for reader in "$@"; do
    mkdir -p "$build/corpus/$reader"
    READER=$reader $build/fuzzer -detect_leaks=0 -timeout=10 -rss_limit_mb=2048 -max_len=8192 -print_final_stats=1 \
        -artifact_prefix="$build/$reader-" \
        $limit "$build/corpus/$reader" "$build/seeds/$reader" \
        >"$build/$reader.log" 2>&1
    code=$?
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$build/$reader.log")
    if [ $code -eq 0 ]; then
        echo "$reader: ${runs:-0} executions, nothing found"
    else
        failed=$((failed + 1))
        echo "$reader: FAILED after ${runs:-?} executions; see $build/$reader.log"
        grep -hE '^fuzz:|^SUMMARY|Test unit written' "$build/$reader.log"
    fi
done
[ $failed -eq 0 ]
