#!/bin/sh
# cli_ranks.sh: the same update however it is split, over real ranks; and what happens when ranks fail.
# Needs Open MPI: without it everything but the refusals is skipped, and counted as one.
. test/cli.sh
alone=$build/train_gpt2_alone # built without MPI
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 # containers run as root
export OMP_WAIT_POLICY=passive                                   # more threads than cores
shape="--layers 1 --heads 2 --channels 32 --seq-len 16 --val-every 0 --sample-every 0 --log-every 0 --warmup 2"
head -c 400 README.md >"$dir/text" # 399 targets: 24 sequences of 16 and one of 15

# ranks R ARGUMENTS...: trains over R ranks (more than there are cores will do).
ranks() {
    R=$1
    shift
    mpirun --oversubscribe -np "$R" "$program" $shape "$@"
}
run() { # NAME R ARGUMENTS...: ... into $dir/NAME
    name=$1
    shift
    at "the run $name"
    ranks "$@" --out "$dir/$name" >"$dir/said" 2>&1 </dev/null || { echo "$name: exit $?"; tail -n 5 "$dir/said"; }
}
compare() { sh dev/compare_runs "$@"; }
identical() { # RUN RUN: the log but for times, and weights and moments after step $last, byte by byte
    timeless "$dir/$1/metrics.jsonl" >"$dir/a" && timeless "$dir/$2/metrics.jsonl" >"$dir/b" && same_files "$dir/a" "$dir/b" &&
        same_files "$dir/$1/$last/model.safetensors" "$dir/$2/$last/model.safetensors" &&
        same_files "$dir/$1/$last/optimizer.safetensors" "$dir/$2/$last/optimizer.safetensors"
}
field() { sed -n "s/.*\"event\":\"train\".*\"$2\":\"\{0,1\}\([^,\"}]*\).*/\1/p" "$dir/$1/metrics.jsonl"; }

# ---- planning needs no ranks
plan() { output "$dir/plan" "$program" plan "$@"; }
check "exercise 1 of chapter 27: B 8, T 256, R 4, K 16" plan --batch 8 --seq-len 256 --ranks 4 --micro-steps 16
check "... is 131,072 tokens an update" grep -q '^update  *131,072 tokens = 512 sequences of 256' "$dir/plan"
check "... in 16 micro-batches on every rank" grep -q 'every rank takes 16 micro-batches' "$dir/plan"
check "5 micro-batches on 3 ranks" plan --batch 2 --seq-len 16 --total-batch 160 --ranks 3
check "... are 2, 2 and 1, and it says so" grep -q '2 of the ranks take 2 micro-batches, the others 1' "$dir/plan"
check "the chapter's learning rates" plan --seq-len 16 --total-batch 16 --lr 6e-4 --warmup 10 --steps 100
check "... 6e-5 at step 0, the peak at 9 and 10, half-way 3.3e-4, above the floor at the last" grep -q \
    'step 0 6e-05, step 9 0.0006, step 10 0.0006, step 55 0.00033, step 99 6.016[0-9]*e-05$' "$dir/plan"
refuses 2 "112 and 128" "a total of 120 tokens in sequences of 16 names its neighbours" "$program" plan --seq-len 16 --total-batch 120 --ranks 2
refuses 2 "mpirun" "--ranks without plan" "$program" $shape --ranks 2

# ---- a build without MPI
refuses 2 "WORLD_SIZE is set without RANK" "half-set variables of a launcher" env WORLD_SIZE=2 "$program" $shape
refuses 2 "built without MPI" "rank 0 of 2 without MPI" env OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=0 "$alone" $shape
if ! has_ranks; then
    skip "no Open MPI"
    finish cli_ranks
    exit
fi

# ---- launchers that a program built with Open MPI cannot serve: one line with a remedy, before MPI prints a page
step="SLURM_STEP_ID=0 SLURM_PROCID=1 SLURM_NTASKS=2 SLURM_JOB_ID=4 SLURM_JOBID=4 SLURM_STEPID=0 SLURM_NODELIST=a"
remedy="which joins no ranks without PMIx; start it with the mpirun of that Open MPI, also inside a Slurm job, or with srun"
# shellcheck disable=SC2086 # lists
{
    refuses 2 "rank 1: srun started 2 ranks, but this program was built with" "srun --mpi=none" env $step "$program" $shape
    refuses 2 "$remedy" "srun --mpi=pmi2" env $step PMI_RANK=1 PMI_SIZE=2 PMI_FD=7 "$program" $shape
    refuses 2 "$remedy" "mpiexec.hydra of MPICH" env PMI_RANK=1 PMI_SIZE=2 HYDI_CONTROL_FD=7 "$program" $shape
    refuses 2 "$remedy" "mpirun of Intel MPI" env PMI_RANK=1 PMI_SIZE=2 MPI_LOCALRANKID=1 I_MPI_MPIRUN=mpirun "$program" $shape
    refuses 2 "torchrun started 2 ranks" "torchrun, started by srun on one machine" env SLURM_STEP_ID=0 SLURM_PROCID=0 \
        SLURM_NTASKS=1 TORCHELASTIC_RUN_ID=none RANK=1 WORLD_SIZE=2 LOCAL_RANK=1 "$program" $shape
    refuses 2 "PMIX_RANK is set" "a launcher that is not known" env PMIX_RANK=1 PMIX_NAMESPACE=x "$program" $shape
}
mpirun --oversubscribe -np 2 "$alone" $shape --out "$dir/alone" >"$dir/job" 2>&1 </dev/null
check "mpirun -np 2 of a build without MPI exits with 2" test $? -eq 2
# (mpirun may end the second process before it speaks)
check "... says it" grep -q '^train_gpt2: .*built without MPI' "$dir/job"
check "... once a process" test "$(grep -c '^train_gpt2: .*built without MPI' "$dir/job")" -le 2
check "... and does not train" test ! -e "$dir/alone"

# ---- the same update: 11 sequences, shuffled, across the ends of epochs, in micro-batches that divide nothing
last=step_00000006
split="--data $dir/text --val-fraction 0 --total-batch 176 --steps 6"
for B in 1 3 4; do
    for R in 1 2 3 4; do
        run plain$B.$R $R $split --batch $B --threads 1 --no-exact
        check "B $B over $R ranks is the same run to 1e-5" compare -t 1e-5 "$dir/plain1.1" "$dir/plain$B.$R"
        for threads in 1 2; do
            [ $threads = 1 ] || { [ $B = 3 ] && [ $R -lt 4 ]; } || continue # to save time
            run exact$B.$R.$threads $R $split --batch $B --threads $threads
            check "exact: B $B, $R ranks, $threads threads: the same bits" identical exact$B.1.1 exact$B.$R.$threads
        done
    done
    check "exact: B $B is the run with --no-exact to 1e-5" compare -t 1e-5 "$dir/plain1.1" "$dir/exact$B.1.1"
done
run repeat 3 $split --batch 3 --threads 1 --no-exact
check "with --no-exact a split repeats bit for bit" identical plain3.3 repeat
check "every update saw other sequences" same "$(field plain1.1 data | sort -u | wc -l)" 6
check "the epoch's short sequence is one target short" same "$(field plain1.1 tokens | sort -u | tr '\n' ' ')" "175 176 "
run seed 1 $split --batch 1 --threads 1 --seed 7
run longer 1 $split --batch 1 --threads 1 --no-exact --steps 7 --decay-steps 6
tells() { # TEXT RUN RUN: compare_runs finds a difference and says so
    words=$1
    shift
    not compare "$@" >"$dir/words" && grep -q "$words" "$dir/words"
}
check "compare_runs names the first step and field that differ" tells '^step 0 (train): data is "[0-9a-f]*" in' "$dir/plain1.1" "$dir/seed"
check "... and a run that continues longer" tells 'plain1.1/metrics.jsonl ends after step 5, .*longer/metrics.jsonl continues' "$dir/plain1.1" "$dir/longer"
check "a run is the same as itself" compare "$dir/seed" "$dir/seed"
run many 9 --data "$dir/text" --val-fraction 0 --total-batch 48 --steps 2 --batch 1 --threads 1
run few 1 --data "$dir/text" --val-fraction 0 --total-batch 48 --steps 2 --batch 1 --threads 1
check "9 ranks for 3 sequences: six only take part in the sums" compare -t 1e-5 "$dir/few" "$dir/many"
last=step_00000002
run val1 1 --data README.md --total-batch 160 --steps 2 --val-every 1 --batch 3
run val3 3 --data README.md --total-batch 160 --steps 2 --val-every 1 --batch 3
check "validation over 3 ranks has the same bits" identical val1 val3

# ---- exercise 2 of chapter 27: two ranks with 8 and 4 valid tokens weigh 2/3 and 1/3
eight="--seq-len 8 --batch 1 --no-shuffle --val-fraction 0 --steps 1 --threads 1"
head -c 13 README.md >"$dir/both"        # 12 targets: a sequence of 8 and one of 4
head -c 9 README.md >"$dir/first"        # the sequence of 8 alone
tail -c 5 "$dir/both" >"$dir/second"     # the sequence of 4 alone
run run_both 2 $eight --data "$dir/both" --total-batch 16
run run_first 1 $eight --data "$dir/first" --total-batch 8
run run_second 1 $eight --data "$dir/second" --total-batch 8
l8=$(field run_first loss) l4=$(field run_second loss)
check "both sequences have a loss of their own" differ "$l8" "$l4"
check "the update has 12 tokens" same "$(field run_both tokens)" 12
check "its loss is 2/3 of one rank's mean and 1/3 of the other's" near "$(field run_both loss)" "2 * $l8 / 3 + $l4 / 3" 1e-6
check "... and not their plain mean" not near "$(field run_both loss)" "($l8 + $l4) / 2" 1e-5

# ---- faults on one rank: one message, the documented code, and all end
# fails CODE TEXT "what it proves" COMMAND...: like refuses, but mpirun adds lines of its own.
fails() {
    wanted=$1 words=$2 proves=$3
    shift 3
    at "$proves"
    timeout 30 "$@" >"$dir/said" 2>&1 </dev/null
    got=$?
    [ $got -eq "$wanted" ] && [ "$(grep -c '^train_gpt2: ' "$dir/said")" -eq 1 ] && grep -q "^train_gpt2: .*$words" "$dir/said"
    count $? "$proves (exit $got, wanted $wanted)"
}
start="mpirun --oversubscribe -np"
small="$shape --out $dir/fault --overwrite --steps 3 --total-batch 160"
fails 2 "rank 0: unknown option --batchh" "a misspelt option is said once" $start 3 "$program" $small --batchh 3
fails 2 "rank 1: --lr differs between ranks: here it is 0.002, on rank 0 it is 0.001" "ranks with different options" \
    $start 1 "$program" $small --lr 1e-3 : -np 2 "$program" $small --lr 2e-3
cp "$dir/text" "$dir/other" && printf x >>"$dir/other"
mkdir "$dir/here" "$dir/there" && cp "$dir/text" "$dir/here/data.txt" && cp "$dir/other" "$dir/there/data.txt"
fails 2 "rank 1: training data differs between ranks" "files that differ under one name" \
    $start 1 -wdir "$dir/here" "$program" $small --data data.txt : -np 1 -wdir "$dir/there" "$program" $small --data data.txt
rm "$dir/there/data.txt"
fails 3 "rank 1: data.txt: no such file" "a file missing on one rank" \
    $start 1 -wdir "$dir/here" "$program" $small --data data.txt : -np 1 -wdir "$dir/there" "$program" $small --data data.txt
for place in here there; do cp -R "$dir/few/step_00000002" "$dir/$place/start"; done
printf '\100' | dd of="$dir/there/start/model.safetensors" bs=1 seek=$(($(wc -c <"$dir/there/start/model.safetensors") - 400)) conv=notrunc 2>/dev/null
model="$small --model start --data $PWD/README.md"
fails 3 "rank 1: the weights of .* differ from rank 0's" "a model that differs under one name" \
    $start 1 -wdir "$dir/here" "$program" $model : -np 1 -wdir "$dir/there" "$program" $model
large="$small --batch 60000 --total-batch 1920000" # gigabytes that are only touched when used
if grep -q __asan_init "$program"; then
    skip "a limit of memory, which the address sanitizer cannot bear"
else
    fails 1 "rank 1: .*no memory" "an allocation that fails on one rank" \
        $start 1 "$program" $large : -np 1 sh -c "ulimit -v 2000000; exec $program $large"
fi
fails 4 "rank 0: step 1: .*rank 0's gradient of .* is not finite" "NaN stops all ranks at the same step and names tensor and rank" \
    $start 3 "$program" $small --lr 1e30 --warmup 0 --clip 0
fails 4 "rank 0: step 1: .*rank 0's gradient of .* is not finite" "... with --no-exact too" \
    $start 3 "$program" $small --lr 1e30 --warmup 0 --clip 0 --no-exact
check "--nonfinite skip:2 leaves two updates out on all ranks" output "$dir/job" sh -c "$start 2 '$program' $small \
    --lr 1e30 --warmup 0 --clip 0 --nonfinite skip:2 2>&1"
check "... with a warning each" test "$(grep -c 'warning: step [12]: .*skipped' "$dir/job")" -eq 2

# lose SIGNAL K: what the job says when rank K of three gets a signal in the middle of training; gone within 15 s.
lose() {
    at "SIG$1 to rank $2"
    rm -rf "$dir/fault"
    $start 3 "$program" $small --steps 1000000 --rank-timeout 2 >"$dir/job" 2>&1 </dev/null &
    job=$!
    turns=0
    until grep -q '"event":"train"' "$dir/fault/metrics.jsonl" 2>/dev/null || [ $turns -gt 300 ] || ! kill -0 $job 2>/dev/null; do
        sleep 0.1
        turns=$((turns + 1))
    done
    trained=no
    kill -0 $job 2>/dev/null && trained=yes
    for process in $(ps -o pid= --ppid $job); do
        tr '\0' '\n' <"/proc/$process/environ" | grep -q "^OMPI_COMM_WORLD_RANK=$2\$" && kill -"$1" "$process"
    done
    turns=0
    while kill -0 $job 2>/dev/null && [ $turns -lt 150 ]; do
        sleep 0.1
        turns=$((turns + 1))
    done
    [ $turns -lt 150 ] || kill -9 $job
    wait $job
    lost=$?
}
gone() {
    sleep 0.5
    ! pgrep -f "$dir/fault --overwrite" >/dev/null
}
lose KILL 1
check "kill -9 of a rank ends the job within 15 s" test $trained = yes -a $lost -ne 0 -a $turns -lt 150
check "... with a line that says which" grep -q 'rank 1 ' "$dir/job"
check "... and leaves nothing running" gone
for rank in 0 2; do
    lose STOP $rank
    check "a rank that hangs ends the job with exit code 1" test $trained = yes -a $lost -eq 1 -a $turns -lt 150
    check "... one line says which" test "$(grep -c "^train_gpt2: rank [0-2]: rank $rank (process .*no heartbeat" "$dir/job")" -eq 1
    check "... and nothing is left running" gone
done

# ---- ranks that share cores: the start-up table says so
few="$small --steps 1 --progress lines"
check "two ranks with 300 threads each share cores, and it is said" prints \
    'device .*\(--threads; 2 ranks with 600 threads share [0-9]+ cores?\)' $start 2 "$program" $few --threads 300
check "... two ranks that are bound to one core" prints '; 2 ranks with 2 threads share 1 core\)' \
    taskset -c 0 $start 2 --bind-to none "$program" $few
"$program" $few >"$dir/alone.out" 2>&1 </dev/null
check "... of one process it is not" not grep -q 'share [0-9]* core' "$dir/alone.out"
finish cli_ranks
