#!/bin/sh
# run.sh TEST...: runs test programs and scripts, shows what failed, and adds their closing lines up.
# Each test ends with "NAME: N passed, N failed[, N skipped]"; one that ends without it has failed.
passed=0 failed=0 skipped=0
log=${BUILD:-build}/test.log
for test in "$@"; do
    case $test in
    *.sh) sh "$test" >"$log" 2>&1 </dev/null; code=$? ;;
    *) "$test" >"$log" 2>&1 </dev/null; code=$? ;;
    esac
    cat "$log"
    line=$(tail -n 1 "$log" | grep -E '^[^ ]+: [0-9]+ passed, [0-9]+ failed(, [0-9]+ skipped)?$')
    if [ -z "$line" ]; then
        echo "$test: ended with code $code before its closing line"
        failed=$((failed + 1))
        continue
    fi
    counts=$(echo "${line##*: }" | tr -dc '0-9,')
    p=${counts%%,*} rest=${counts#*,}
    passed=$((passed + p)) failed=$((failed + ${rest%%,*}))
    case $rest in *,*) skipped=$((skipped + ${rest#*,})) ;; esac
done
echo
if [ $skipped -gt 0 ]; then
    echo "$passed passed, $failed failed, $skipped skipped"
else
    echo "$passed passed, $failed failed"
fi
[ $failed -eq 0 ]
