#!/bin/sh
# cli_faults.sh: one call after the other of a program that trains, resumes, converts and tokenizes is made to fail
# (fault_shim.c), in each way that such a call can: an error, a signal, half done, or the process killed just then.
# Whatever happens, the program ends with 0, 1 or 3 and one line that says why; and when it is started again, the
# end is that of a run that nothing disturbed, byte for byte. Every FAULTS_STRIDE-th (61st) is tried; SOAK=1: all.
. test/cli.sh
head -c 4000 README.md >"$dir/text"
place=$dir/place # all that a program does happens here
base="--layers 1 --heads 2 --channels 16 --seq-len 16 --batch 2 --total-batch 64 --threads 1 --log-every 0
    --val-every 3 --sample-every 0 --data $place/text --steps 5 --save-every 2 --keep 2 --out $place/run"
calls="open opendir readdir read pread write fsync close rename mmap calloc mkdir ftruncate unlink stat"
stride=${FAULTS_STRIDE:-61}
most=12
[ -z "${SOAK:-}" ] || stride=1 most=300

# What each call may do.
kinds() {
    case $1 in
    open) echo EMFILE EACCES ENOSPC kill ;;
    opendir) echo EMFILE EACCES kill ;;
    readdir | stat) echo EIO kill ;;
    read | pread) echo EIO EINTR short kill ;;
    write) echo EIO ENOSPC EINTR short kill ;;
    fsync) echo EIO ENOSPC kill ;;
    mmap | calloc) echo ENOMEM kill ;;
    *) echo EIO kill ;;
    esac
}

# Each task: start makes $place as it is before, work is what is disturbed, again what is started after it, and
# whole says whether the end is right.
fresh() { rm -rf "$place" && mkdir "$place" && cp "$dir/text" "$place/text"; }
train_start() { fresh; }
train_work() { "$program" $base --resume auto; }
train_again() { "$program" $base --resume auto; }
train_whole() { same_run; }
resume_start() { fresh && cp -R "$dir/half" "$place/run"; }
resume_work() { "$program" $base --resume auto; }
resume_again() { "$program" $base --resume auto; }
resume_whole() { same_run; }
convert_start() { fresh && cp -R "$dir/whole" "$place/run"; }
convert_first() { "$program" convert "$place/run" "$place/model.bin"; }
convert_second() { "$program" convert "$place/model.bin" "$place/hf"; }
convert_work() { convert_first && convert_second; }
convert_again() { # what is there is whole
    [ -e "$place/model.bin" ] || convert_first || return
    [ -e "$place/hf" ] || convert_second
}
convert_whole() {
    same_files "$place/model.bin" "$dir/model.bin" && same_files "$place/hf/model.safetensors" "$dir/hf.safetensors" &&
        [ "$(ls "$place" | grep -v '\.tmp$')" = "$(printf 'hf\nmodel.bin\nrun\ntext')" ]
}
tokenize_start() { fresh; }
tokenize_work() { "$program" tokenize "$place/text" --out "$place/shards" --shard-tokens 300; }
tokenize_again() { tokenize_work; }
tokenize_whole() { # a temporary file that could not be removed may stay, under its temporary name
    [ "$(ls "$place/shards" | grep -v '\.tmp$')" = "$(ls "$dir/shards")" ] || return 1
    for file in "$dir"/shards/*.bin; do same_files "$place/shards/${file##*/}" "$file" || return 1; done
}

records() { timeless "$1/metrics.jsonl" | grep -v '"event":"warning"'; } # a fault may be worth a warning
same_run() {
    for file in model.safetensors optimizer.safetensors config.json; do
        same_files "$place/run/step_00000005/$file" "$dir/whole/step_00000005/$file" || return 1
    done
    records "$place/run" >"$dir/got" && same_files "$dir/got" "$dir/want" &&
        same_files "$place/run/log.txt" "$dir/whole/log.txt"
}

fresh
check "an undisturbed run" says "trained 5 updates" train_work
cp -R "$place/run" "$dir/whole"
records "$dir/whole" >"$dir/want"
check "... converted" convert_work
cp "$place/model.bin" "$dir/model.bin" && cp "$place/hf/model.safetensors" "$dir/hf.safetensors"
check "... and tokenized" tokenize_work
cp -R "$place/shards" "$dir/shards"
fresh
check "... and its first half, as a crash would leave it" "$program" $base --keep 0
rm -r "$place/run/step_00000004" "$place/run/step_00000005" && cp -R "$place/run" "$dir/half"

if ! [ -e "$build/fault_shim.so" ] || nm "$program" | grep -q __asan_init; then
    skip "calls that fail: they cannot be made to here"
    finish cli_faults
    exit
fi
tried=0 wrong=0
trouble() { # WHAT
    wrong=$((wrong + 1))
    echo "$FAULT_CALL $FAULT_AT $FAULT_KIND in $task: $1 (exit $code)" >>"$dir/wrong"
    head -n 3 "$dir/err" >>"$dir/wrong"
}
# One disturbed run, and what comes after it.
disturb() {
    tried=$((tried + 1))
    ${task}_start
    (
        export LD_PRELOAD="$build/fault_shim.so" FAULT_CALL FAULT_AT FAULT_KIND FAULT_UNDER
        [ "$FAULT_CALL" = calloc ] && unset FAULT_UNDER
        ${task}_work
    ) >"$dir/out" 2>"$dir/err" </dev/null
    code=$?
    case $FAULT_KIND in
    EINTR | short) [ $code -eq 0 ] || trouble "should not have ended" ;;
    kill) [ $code -eq 137 ] || [ $code -eq 0 ] || trouble "was killed" ;;
    *)
        case $code in
        0) ;;
        1 | 3) [ "$(grep -vc warning: "$dir/err")" -eq 1 ] && grep -q '^train_gpt2: ' "$dir/err" || trouble "says no clear line" ;;
        *) trouble "ends otherwise than it may" ;;
        esac
        ;;
    esac
    ${task}_again >"$dir/out" 2>"$dir/err" </dev/null
    code=$?
    [ $code -eq 0 ] || trouble "cannot be started again"
    ${task}_whole >"$dir/out" 2>&1 || trouble "ends otherwise than undisturbed"
}
FAULT_UNDER=$place
for task in train resume convert tokenize; do
    : >"$dir/wrong"
    tried=0 wrong=0
    ${task}_start
    rm -f "$dir/count" "$dir/count_all"
    (
        export LD_PRELOAD="$build/fault_shim.so" FAULT_UNDER FAULT_COUNT="$dir/count"
        ${task}_work
    ) >"$dir/out" 2>&1
    ${task}_start
    (
        export LD_PRELOAD="$build/fault_shim.so" FAULT_COUNT="$dir/count_all"
        unset FAULT_UNDER
        ${task}_work
    ) >"$dir/out" 2>&1
    number=0
    for FAULT_CALL in $calls; do
        from=count
        [ $FAULT_CALL = calloc ] && from=count_all
        last=$(awk -v call=$FAULT_CALL '$1 == call && $2 > most { most = $2 } END { print most + 0 }' "$dir/$from")
        for FAULT_KIND in $(kinds $FAULT_CALL); do
            # The calls that are tried: another first one for each kind, and of very many calls $most.
            step=$stride
            [ $((last / most)) -lt $step ] || step=$((last / most))
            number=$((number + 1))
            FAULT_AT=$((1 + number * 7 % step))
            while [ $FAULT_AT -le "$last" ]; do
                at "$FAULT_CALL $FAULT_AT $FAULT_KIND in $task"
                disturb
                FAULT_AT=$((FAULT_AT + step))
            done
        done
    done
    [ $tried -gt 3 ] || wrong=1 # a program that makes no calls proves nothing
    cp "$dir/wrong" "$dir/said"
    count $wrong "$tried faults in $task: it says why, and the end is the undisturbed one"
    [ -z "${V:-}" ] || echo "  $task: $tried faults, $wrong wrong"
done
finish cli_faults
