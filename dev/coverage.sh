#!/bin/sh
# coverage.sh [TEST...]: which lines and branches of llmc/ and train_gpt2.c no test runs. Builds the program and its
# tests with counters in build/coverage, runs them (all, or those named: build/coverage/test_x, test/cli_x.sh) and
# writes build/coverage/uncovered.txt: each line that was never run, and each branch that never went that way.
# Prints the share of lines by folder. Kernels for CUDA are not among them: the emulator counts its own.
# `coverage.sh --report` counts what was run so far, and runs nothing.
# A source that is built more than once (float, double, plain loops) counts as run where one of them is.
cd "$(dirname "$0")/.." || exit 1
command -v gcov >/dev/null || { echo "gcov is missing: it comes with gcc"; exit 1; }
unset MAKEFLAGS MFLAGS
build=build/coverage
if [ "${1:-}" != --report ]; then
    make -s -j"${JOBS:-$(nproc)}" BUILD=$build OPTIMIZE='-O1 -g --coverage -fprofile-update=atomic' counted || exit 1
    find $build -name '*.gcda' -exec rm -f {} +
    # Some tests start the program as another user, who must be able to write the counters as well.
    chmod -R a+rwX $build && umask 0
    BUILD=$build RUN_LIMIT=3600 sh test/run.sh ${@:-$(make -s BUILD=$build list-tests)} | tail -n 40
fi

rm -rf $build/gcov && mkdir -p $build/gcov
find $build -name '*.gcda' | grep -v '/test\|/dev/' | while read -r counts; do
    directory=$build/gcov/$(echo "$counts" | tr '/' '_')
    mkdir -p "$directory"
    gcov -b -c -p -o "$(dirname "$counts")" "$counts" >/dev/null 2>&1
    mv ./*.gcov "$directory" 2>/dev/null
done
# Lines of gcov: "count:line:text", where ##### is never and - nothing to run; "branch N taken M" after its line.
find $build/gcov -name '*.gcov' -exec cat {} + | awk -F: '
    /^ *-: *0:Source:/ { file = $4; wanted = file ~ /^(llmc\/|train_gpt2\.c$)/; next }
    !wanted { next }
    /^branch/ {
        split($0, word, " ")
        key = file ":" line ":" word[2]
        branch[key] += 0
        if ($0 ~ /taken [1-9]/) branch[key] = 1
        next
    }
    /^ *[^ ]*: *[0-9]+:/ {
        line = $2 + 0
        count = $1
        gsub(/[ *]/, "", count)
        if (count == "-") next
        key = file ":" line
        text[key] = substr($0, index($0, $2) + length($2) + 1)
        run[key] += count ~ /^[0-9]/ && count + 0 > 0
    }
    END {
        for (key in run) {
            split(key, part, ":")
            folder = part[1]
            sub(/\/[^\/]*$/, "", folder)
            lines[folder]++
            covered[folder] += run[key] > 0
            if (!run[key]) print key ": never run: " text[key] > uncovered
        }
        for (key in branch) {
            split(key, part, ":")
            place = part[1] ":" part[2]
            branches++
            taken += branch[key]
            if (!branch[key] && run[place]) print place ": branch " part[3] " never taken: " text[place] > uncovered
        }
        for (folder in lines) {
            printf "%-20s %5d of %5d lines, %5.1f %%\n", folder, covered[folder], lines[folder], 100 * covered[folder] / lines[folder] | "sort"
            all += lines[folder]
            done += covered[folder]
        }
        close("sort")
        printf "%-20s %5d of %5d lines, %5.1f %%; %d of %d branches, %.1f %%\n", "all", done, all, 100 * done / all, taken, branches, 100 * taken / branches
    }' uncovered="$build/uncovered.all"
sort -t: -k1,1 -k2,2n $build/uncovered.all >$build/uncovered.txt && rm -f $build/uncovered.all
echo "$build/uncovered.txt has them one by one"
