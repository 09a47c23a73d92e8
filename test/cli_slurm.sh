#!/bin/sh
# cli_slurm.sh: the batch script dev/slurm_train.sh, with a stand-in for scontrol: a job that gets Slurm's warning saves,
# goes back into the queue, and continues to the undisturbed run's bytes when it starts again; a finished or failed job does
# not go back.
. test/cli.sh
mkdir "$dir/bin"
printf '#!/bin/sh\necho "$@" >>"%s/queue"\n' "$dir" >"$dir/bin/scontrol"
chmod +x "$dir/bin/scontrol"
head -c 4000 README.md >"$dir/text"
run="--layers 1 --heads 2 --channels 32 --seq-len 16 --data $dir/text --log-every 0 --threads 1 --batch 2 --total-batch 192"
run="$run --val-every 0 --sample-every 0 --steps 2000"
# The batch script as Slurm would start it, without mpirun; --out and its name follow.
job="env PATH=$dir/bin:$PATH LAUNCH=env TRAIN_GPT2=$program SLURM_JOB_ID=4711 bash dev/slurm_train.sh $run"
# shellcheck disable=SC2086 # a list
check "the undisturbed run" says "trained 2000 updates" "$program" $run --out "$dir/straight"
at "a job that is warned"
# shellcheck disable=SC2086 # a list
$job --out "$dir/run" >"$dir/first" 2>&1 &
batch=$!
await "$dir/run/metrics.jsonl" $batch
until grep -q '"step":20,' "$dir/run/metrics.jsonl" 2>/dev/null || ! kill -0 $batch 2>/dev/null; do sleep 0.02; done
kill -USR1 $batch 2>/dev/null # Slurm's --signal=B:USR1@180
wait $batch
check "a warning from Slurm: the run saves and the job ends with 75" test $? -eq 75
check "... after it went back into the queue" grep -qx "requeue 4711" "$dir/queue"
# shellcheck disable=SC2086 # a list
check "the job's second start continues" output "$dir/second" $job --out "$dir/run"
for file in model.safetensors optimizer.safetensors; do
    check "... and ends with the undisturbed run's $file" same_files "$dir/straight/step_00002000/$file" "$dir/run/step_00002000/$file"
done
check "... and does not go back into the queue" same "$(cat "$dir/queue" 2>&1)" "requeue 4711"
finish cli_slurm
