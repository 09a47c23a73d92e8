#!/bin/sh
# cli_says.sh: what the program says of a run, a model or a path is so; and the best checkpoint stays.
. test/cli.sh
export OMP_WAIT_POLICY=passive # the machine may be busy
root=$(pwd)
hf=$root/test/fixtures/hf_tiny
shape="--layers 1 --heads 2 --channels 16 --seq-len 16 --batch 4 --total-batch 64 --threads 1 --log-every 0 --sample-every 0"
cd "$dir" || exit 1
awk 'BEGIN { for (i = 1; i <= 2000; i++) print i }' >t.txt
train() { "$program" $shape --data t.txt "$@"; }
said() { "$@" 2>&1; } # both streams as one
lacks() { # TEXT COMMAND...
    local text=$1
    shift
    output spoken "$@" && not grep -F -- "$text" spoken
}

# ---- plan
check "plan prints no rate of a step that never runs" says "rates      step 0 1e-05, step 4 5e-05" \
    "$program" plan $shape --data t.txt --steps 5
check "... and says that the warm-up is longer than the run" says "the warm-up of 100 steps is longer than the run: --lr 0.001 is never reached" \
    "$program" plan $shape --data t.txt --steps 5
check "... but not where it is shorter" lacks "warm-up" "$program" plan $shape --data t.txt --steps 105
check "... whose last rate is that of the last step" prints '^rates .*, step 104 [0-9.e-]+$' "$program" plan $shape --data t.txt --steps 105

# ---- a run and its resumes
check "a run of 10 updates" says "trained 10 updates" train --steps 10 --val-every 0 --save-every 5 --out run
check "resuming with fewer steps says where it is" says "run/step_00000010: this run is at step 10, beyond --steps 5: nothing is left to do" \
    "$program" --resume auto --out run --steps 5
check "... and warns of nothing that is not so" lacks "warning" said "$program" --resume auto --out run --steps 5
check "resuming with as many says that it is finished" says "this run is finished, all 10 updates" "$program" --resume auto --out run
refuses 2 "--resume true: no good checkpoint: no such file; it takes auto, must, never, a checkpoint or the directory of a run" "--resume true" "$program" --resume true --out run
check "--resume takes the directory of a run" says "resumed from run/step_00000010" "$program" --resume run --steps 11
check "... with another --batch, and says what that changes" says "--batch is 2 from here on, and was 4: the same updates, but no longer the same bits" \
    said "$program" --resume run/ --steps 12 --batch 2
check "without checkpoints none are claimed" says "no checkpoint was saved (--save-every 0)" train --steps 2 --val-every 0 --save-every 0 --out bare
check "... where there are none" says "bare: the directory of a run that has no checkpoint yet" "$program" verify bare
for command in sample eval; do
    refuses 3 "bare: the directory of a run that has no checkpoint yet" "$command of a run without a checkpoint" "$program" $command --model bare
done
refuses 3 "this run has no checkpoint yet" "... and resuming it by its name" "$program" --resume bare
mkdir broken && cp -r run/step_00000012 broken && printf x >>broken/step_00000012/config.json
check "a run whose checkpoints are all damaged is said to be one" says "broken: the directory of a run, which has checkpoints, but none is good" \
    sh -c "'$program' sample --model broken 2>&1 || [ \$? -eq 3 ]"

# ---- verify, eval, sample
"$program" verify t.txt nowhere run nowhere2 >out 2>err
code=$?
check "verify checks every path" grep -F "step_00000012: a complete checkpoint" out
check "... names each that is wrong" test "$(grep -c 'no such file' err)" = 2
check "... and fails" test $code -eq 3
refuses 2 "--ids has 1 token id, which follows none and so has no loss" "eval of one token id" "$program" eval --model run --ids 65
check "--top-p 0 takes the likeliest token" output greedy "$program" sample --model $hf --prompt "85 20 17" --temperature 0 --tokens 21
check "... always" output nucleus "$program" sample --model $hf --prompt "85 20 17" --top-p 0 --temperature 2 --tokens 21
check "... the same one" same_files greedy nucleus
refuses 3 "gpt2-xl: is the name of a shape; give weights" "a shape's name where weights are needed" "$program" sample --model gpt2-xl
refuses 2 "torchrun started 4 ranks, but this program finds its ranks over MPI only" "ranks without a launcher: each says so" \
    env RANK=1 WORLD_SIZE=4 "$program"

# ---- what a model is called
cp -r $hf gpt2
"$build/make_data" raw t.txt ids.bin # ids of characters, below 97
for model in gpt2/ ./gpt2 "$dir/gpt2"; do
    check "--model $model is the weights, with defaults that suit them" says "update     1,024 tokens = 64 sequences of 16" \
        "$program" plan --model "$model" --data ids.bin --data-type uint16 --seq-len 16
    check "... and their shape" says "model      2 layers, 4 heads, 32 channels" \
        "$program" plan --model "$model" --data ids.bin --data-type uint16 --seq-len 16
done
check "--model gpt2 is the shape, and the directory is said" says "to start from the weights in the directory gpt2 write --model ./gpt2" \
    said "$program" plan --model gpt2 --data ids.bin --data-type uint16
check "the directory of a run is a model to start from" says "weights from run/step_00000012" \
    "$program" --model run --data t.txt --steps 1 --total-batch 64 --log-every 0 --sample-every 0 --out tuned

# ---- shorter sequences keep the other position embeddings
check "training on shorter sequences than the model has" says "16 positions have an embedding; those from 8 on are not trained" \
    "$program" --model run --seq-len 8 --data t.txt --steps 3 --total-batch 64 --lr 0.1 --log-every 0 --sample-every 0 --save-every 2 --out short
check "... keeps all positions" grep -F '"n_positions": 16' short/step_00000003/config.json
# Writes the rows of wpe as llm.c stores them: after 1024 bytes and 256 rows of 16 floats.
positions() { "$program" convert "$1" "$2.bin" && tail -c +17409 "$2.bin" | head -c 1024 >"$2" && [ -s "$2" ]; }
check "... those that were not trained" positions run before
check "... of both" positions short after
tail -c 512 before >before.end && tail -c 512 after >after.end
head -c 512 before >before.begin && head -c 512 after >after.begin
check "... as they were" same_files before.end after.end
check "... while the others were trained" other_files before.begin after.begin
check "such a run is resumed with its length" says "resumed from short/step_00000003" "$program" --resume short --steps 4
refuses 2 "--seq-len 16 makes another run" "... and not with another" "$program" --resume short --steps 5 --seq-len 16

# ---- the best checkpoint
best() { # the step of the lowest validation loss after the first, of a run
    sed -n 's/.*"event":"val","step":\([0-9]*\),"loss":\([0-9.]*\).*/\2 \1/p' "$1/metrics.jsonl" | grep -v ' 0$' | sort -n | head -n 1 | sed 's/.* //'
}
link() { readlink "$1/best"; }
long="--val-every 5 --save-every 20 --keep 1 --keep-best --lr 0.3 --warmup 2 --schedule constant"
check "--keep-best" says "best: step " train --steps 35 $long --out best
wanted=$(printf 'step_%08d' "$(best best)")
check "... names the checkpoint with the lowest validation loss" same "$(link best)" "$wanted"
check "... which is not the newest, and stays beside it" same "$(cd best && echo step_*)" "$wanted step_00000035"
check "eval takes it by that name" output evaluated "$program" eval --model best/best --data t.txt --val-fraction 0.1
want=$(sed -n "s/.*\"event\":\"val\",\"step\":$(best best),\"loss\":\([0-9.]*\).*/\1/p" best/metrics.jsonl)
check "... with the loss that training logged" near "$(sed -n 's/^loss \([0-9.]*\).*/\1/p' evaluated)" "$want" 1e-6
check "so do sample and verify" says "a complete checkpoint after" "$program" verify best/best
check "a run in two parts" says "trained 20 updates" train --steps 20 $long --out parts
check "... continues to the same best" "$program" --resume auto --out parts --steps 35
check "... as in one" same "$(link parts)" "$wanted"
check "... and keeps the same ones" same "$(cd parts && echo step_*)" "$wanted step_00000035"
rm -r "parts/$wanted"
check "a best that is gone is reported" says "$wanted, the best checkpoint so far" said "$program" --resume parts --steps 36
check "a run that begins again" says "trained 2 updates" train --steps 2 --out best --overwrite
check "... takes the name of the best with it" test ! -L best/best
refuses 2 "--keep-best needs a validation loss" "--keep-best without validation" train --steps 2 --keep-best --val-every 0 --out none
check "... leaves nothing behind" test ! -e none

cd "$root" || exit 1
finish cli_says
