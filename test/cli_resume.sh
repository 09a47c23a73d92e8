#!/bin/sh
# cli_resume.sh: a run that is stopped or killed and resumed, on another number of ranks if need be, is the
# same run: weights, moments and records, byte for byte but for times. Needs Open MPI for the sequences on ranks;
# without it these are skipped, and counted as one. SOAK=1 kills 1,000 times instead of 50 (make soak).
. test/cli.sh
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 # containers run as root
export OMP_WAIT_POLICY=passive                                   # more threads than cores
head -c 700 README.md >"$dir/text" # an epoch of 630 training bytes: 40 sequences, so updates of 3 cross its edge
shape="--layers 1 --heads 2 --channels 16 --seq-len 16 --data $dir/text --log-every 0 --threads 1"
base="$shape --batch 2 --total-batch 48 --warmup 2 --val-every 5 --sample-every 5 --sample-tokens 8"

# train NAME OPTIONS...: one rank, into $dir/NAME; ranks R NAME OPTIONS...: R ranks.
train() {
    name=$1
    shift
    output "$dir/$name.out" "$program" $base --out "$dir/$name" "$@" 2>"$dir/$name.err" </dev/null
}
resume() { # NAME OPTIONS...: continues with what the checkpoint says
    name=$1
    shift
    output "$dir/$name.out" "$program" --out "$dir/$name" --resume must "$@" 2>"$dir/$name.err" </dev/null
}
ranks() {
    R=$1 name=$2
    shift 2
    output "$dir/$name.out" mpirun --oversubscribe -np "$R" "$program" --out "$dir/$name" "$@" 2>"$dir/$name.err" </dev/null
}
step() { printf '%s/%s/step_%08d' "$dir" "$1" "$2"; }
records() { timeless "$dir/$1/metrics.jsonl"; }
# identical A B STEP: weights, moments, records and log.txt of two runs.
identical() {
    local file
    for file in config.json model.safetensors optimizer.safetensors tokenizer.json; do
        same_files "$(step "$1" "$3")/$file" "$(step "$2" "$3")/$file" || return 1
    done
    records "$1" >"$dir/a" && records "$2" >"$dir/b" && same_files "$dir/a" "$dir/b" &&
        same_files "$dir/$1/log.txt" "$dir/$2/log.txt"
}
# forget NAME STEP: removes the checkpoints beyond that step.
forget() {
    for made in "$dir/$1"/step_*; do
        number=${made##*step_}
        [ "$(expr "$number" + 0)" -le "$2" ] || rm -r "$made"
    done
}
said() { grep -qF -- "$2" "$dir/$1.err" || { cat "$dir/$1.err"; return 1; }; }
# The run's records have each step from 0 to N-1 once, in order.
each_step_once() {
    sed -n 's/.*"event":"train","step":\([0-9]*\).*/\1/p' "$dir/$1/metrics.jsonl" >"$dir/steps"
    seq 0 $(($2 - 1)) >"$dir/counted" && same_files "$dir/counted" "$dir/steps"
}

# ---- 20 steps straight, and 7 + 13, across the edges of an epoch (13.3 updates)
check "20 steps run" train straight --steps 20 --save-every 1 --keep 0
check "... and again" train parts --steps 20 --save-every 1 --keep 0
forget parts 7
check "... as if it had crashed after its checkpoint at step 7; 13 more" resume parts
check "7 + 13 steps are 20 steps, byte for byte" identical straight parts 20
check "... each step stands once" each_step_once parts 20

check "20 steps, saved every 4" train cut --steps 20 --save-every 4 --keep 0
forget cut 8
check "from step 8 on with more threads and more saves" resume cut --threads 2 --save-every 1
check "... and is the same run" same_files "$(step straight 20)/optimizer.safetensors" "$(step cut 20)/optimizer.safetensors"
check "... each step once" each_step_once cut 20
check "a finished run says so and ends well" resume cut
check "... in one line" grep -q "this run is finished, all 20 updates are done" "$dir/cut.out"
check "it can be made longer" resume cut --steps 22
check "... and says what that does to the schedule" said cut "the learning rate now reaches its minimum at step 22, not 20"
check "... which --decay-steps keeps" test "$(resume cut --steps 23 --decay-steps 22 && wc -c <"$dir/cut.err")" = 0
check "--keep 2 leaves two" train kept --steps 9 --save-every 2 --keep 2
check "... the newest" test "$(cd "$dir/kept" && echo step_*)" = "step_00000008 step_00000009"
check "--save-every 0 saves nothing" train unsaved --steps 3 --save-every 0
check "... at all" test "$(ls "$dir/unsaved")" = "log.txt
metrics.jsonl"

# ---- where to resume from
again="$program $base --steps 4"
refuses 3 "no good checkpoint in" "must, in an empty directory" $again --out "$dir/none" --resume must
check "auto, in an empty directory, starts a new run" train fresh --steps 4 --resume auto
check "... and writes a checkpoint" test -d "$(step fresh 4)"
refuses 2 "already holds a run" "never, where a run is" $again --out "$dir/fresh" --resume never
refuses 2 "needs --out" "auto without --out" $again --resume auto
refuses 2 "contradict" "--overwrite and --resume" $again --out "$dir/fresh" --resume must --overwrite
refuses 3 "no good checkpoint" "a checkpoint that is none" $again --resume "$dir/nowhere"
check "from a checkpoint by its path, into another directory" "$program" --resume "$(step straight 9)" --out "$dir/other"
check "... gives the same end" same_files "$(step straight 20)/model.safetensors" "$(step other 20)/model.safetensors"
check "from an older one in its own directory" "$program" --resume "$(step parts 18)/"
check "... puts the later ones aside" test -d "$(step parts 20).aside" -a -d "$(step parts 19).aside"
check "... but not its own" test ! -e "$(step parts 18).aside"
check "... is the same run" identical straight parts 20
check "--overwrite replaces a run" train fresh --steps 2 --overwrite
check "... with its checkpoints" test ! -e "$(step fresh 4)"

# ---- what would be another run
for change in "--seed 1" "--total-batch 32" "--lr 0.5" "--schedule linear" "--beta2 0.9" "--no-shuffle" "--no-exact" \
    "--seq-len 8" "--clip 3" "--warmup 7"; do
    refuses 2 "makes another run" "$change" "$program" --out "$dir/cut" --resume must --steps 30 $change
done
refuses 2 "the weights to start from have 1" "--layers" "$program" --out "$dir/cut" --resume must --steps 30 --layers 2
refuses 2 "--data (as it is now) makes another run" "--data" "$program" --out "$dir/cut" --resume must --steps 30 --data README.md
check "--force resumes all the same" resume cut --steps 24 --lr 0.5 --data README.md --force
check "... loudly" said cut "--lr is 0.5 from here on, and was 0.001: another run (--force)"
check "... and with shorter sequences" resume cut --steps 25 --seq-len 8 --force

# ---- damaged checkpoints
flip() { # FILE: one bit in its middle
    [ -s "$1" ] || return
    middle=$(($(wc -c <"$1") / 2))
    byte=$(od -An -tu1 -j $middle -N 1 "$1")
    printf "\\$(printf %o $((byte ^ 16)))" | dd of="$1" bs=1 seek=$middle conv=notrunc 2>/dev/null
}
for damage in flipped shorter missing; do
    file=$(step $damage 8)/optimizer.safetensors
    check "8 steps, twice saved" train $damage --steps 8 --save-every 4
    case $damage in
    flipped) flip "$file" ;;
    shorter) head -c -1 "$file" >"$dir/part" && cp "$dir/part" "$file" ;;
    missing) rm "$file" ;;
    esac
    check "the newest checkpoint's damage ($damage): the one before is used" resume $damage --steps 8
    check "... loudly" said $damage "step_00000008 is damaged"
    check "... and the damaged one is put aside" test -d "$(step $damage 8).aside"
    check "... each step once" each_step_once $damage 8
done

lines=$(wc -l <"$dir/flipped/log.txt")
for file in "$dir"/flipped/step_*[0-9]/config.json; do echo >>"$file"; done
for resume in auto must; do
    $again --out "$dir/flipped" --resume $resume >"$dir/stdout" 2>"$dir/refused"
    check "$resume, where all checkpoints are damaged, is refused" test $? -eq 3
    check "... and says so last" sh -c "tail -n 1 '$dir/refused' | grep -q 'none is good'"
done
check "... and leaves checkpoints and logs alone" test -d "$(step flipped 4)" -a "$(wc -l <"$dir/flipped/log.txt")" = "$lines"

# ---- signals
for signal in TERM INT USR1; do
    "$program" $base --steps 1000000 --val-every 0 --sample-every 0 --save-every 0 --out "$dir/$signal" >"$dir/$signal.out" 2>&1 &
    pid=$!
    await "$dir/$signal/log.txt" $pid
    # (a shell starts background jobs with SIGINT ignored, and the program takes it all the same)
    kill -$signal $pid
    wait $pid
    check "SIG$signal ends with 75" test $? -eq 75
    check "... a checkpoint" test -n "$(ls -d "$dir/$signal"/step_*)"
    check "... and the way on" grep -q -- "--resume auto --out $dir/$signal" "$dir/$signal.out"
    last=$(sed -n 's/.*"event":"checkpoint","step":\([0-9]*\).*/\1/p' "$dir/$signal/metrics.jsonl")
    check "... which is resumed" resume $signal --steps $((last + 3))
    check "... each step once" each_step_once $signal $((last + 3))
done

# ---- kill -9 at random moments
long="--steps 300 --save-every 5 --val-every 50 --sample-every 0"
train long $long
killed=0 turn=0 kills=50
[ -n "${SOAK:-}" ] && kills=1000
while [ $killed -lt $kills ] && [ $turn -lt $((10 * kills)) ]; do
    turn=$((turn + 1))
    at "kill $turn"
    [ -d "$(step killed 300)" ] && { rm -r "$dir/kept_run" 2>/dev/null; mv "$dir/killed" "$dir/kept_run"; }
    "$program" $base $long --out "$dir/killed" --resume auto >"$dir/killed.out" 2>"$dir/killed.err" </dev/null &
    pid=$!
    sleep "$(awk "BEGIN { srand($turn); printf \"%.3f\", 0.01 + 0.15 * rand() }")"
    kill -9 $pid 2>/dev/null
    wait $pid 2>/dev/null
    case $? in
    137) killed=$((killed + 1)) ;;
    0) [ -d "$dir/killed" ] || break ;;
    *) break ;; # it failed by itself
    esac
    ! grep damaged "$dir/killed.err" || break
done
check "it was killed $kills times" same $killed $kills
check "... and left every checkpoint whole" not grep damaged "$dir/killed.err"
check "after kill -9 at $kills moments the run continues to its end" train killed $long --resume auto
check "... byte for byte" identical long killed 300
check "... each step once" each_step_once killed 300
check "... and nothing unfinished is left" test -z "$(find "$dir/killed" -name '*.tmp')"
[ -d "$dir/kept_run" ] && check "... so are the runs that ended before" identical long kept_run 300

# ---- a full disk
if mkdir "$dir/small" && mount -t tmpfs -o size=200k none "$dir/small" 2>/dev/null; then
    full="$shape --batch 2 --total-batch 48 --warmup 2 --val-every 0 --sample-every 0 --steps 100000 --save-every 3"
    refuses 1 "No space left on device" "a full disk while saving" "$program" $full --out "$dir/small/run" --keep 0
    check "... leaves the checkpoint before it" "$program" $full --out "$dir/small/run" --resume must --steps 1
    check "... and nothing unfinished" test -z "$(find "$dir/small" -name '*.tmp')"
    rm -r "$dir/small/run"
    refuses 1 "No space left on device" "a full disk while logging stops the run" "$program" $full --out "$dir/small/run" --save-every 0
    umount "$dir/small"
else
    skip "a full disk: no small file system can be mounted here"
fi

# ---- ranks
if ! has_ranks; then
    skip "no Open MPI"
    finish cli_resume
    exit
fi
check "2 ranks, 20 steps" ranks 2 two $base --steps 20 --save-every 7 --keep 0
check "2 ranks, 7 steps of 20" ranks 2 two_parts $base --steps 20 --save-every 7 --keep 0
forget two_parts 7
check "... and 13 more" ranks 2 two_parts --resume must
check "... are the same run" identical two two_parts 20
check "--exact on 1 rank, 20 steps" train exact --steps 20 --save-every 5 --keep 0 --exact
check "--exact on 2 ranks, to step 5" ranks 2 moved $base --steps 20 --save-every 5 --keep 0 --exact
forget moved 5
check "... on to step 10 with 3" ranks 3 moved --resume must
forget moved 10
check "... on to the end with 1" resume moved
check "... are the same run, byte for byte" identical exact moved 20
check "saved by 2 ranks, resumed by 4" ranks 4 two --resume must --steps 22 --decay-steps 20
mpirun --oversubscribe -np 2 "$program" $base --steps 1000000 --val-every 0 --sample-every 0 --save-every 0 --out "$dir/usr" >"$dir/usr.out" 2>&1 </dev/null &
pid=$!
await "$dir/usr/log.txt" $pid
kill -USR1 $pid
wait $pid
check "SIGUSR1 to mpirun ends all ranks with 75" test $? -eq 75
check "... with a checkpoint" test -n "$(ls -d "$dir/usr"/step_*)"
mpirun --oversubscribe -np 2 "$program" $base --steps 1000000 --val-every 0 --sample-every 0 --save-every 0 --out "$dir/one" >"$dir/one.out" 2>&1 </dev/null &
pid=$!
await "$dir/one/log.txt" $pid
rank=
for rank in $(cat /proc/$pid/task/*/children); do :; done # the last of them
kill -TERM "${rank:-$pid}"
wait $pid
check "SIGTERM to one of two ranks ends both with 75" test $? -eq 75
last=$(sed -n 's/.*"event":"checkpoint","step":\([0-9]*\).*/\1/p' "$dir/one/metrics.jsonl")
check "... at one step, which is resumed" ranks 2 one --resume must --steps $((last + 3))
check "... each step once" each_step_once one $((last + 3))
finish cli_resume
