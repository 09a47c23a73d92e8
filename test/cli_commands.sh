#!/bin/sh
# cli_commands.sh: sample, eval, verify and convert, as a user runs them.
. test/cli.sh
export OMP_WAIT_POLICY=passive # the machine may be busy
hf=test/fixtures/hf_tiny bin=test/fixtures/llmc_tiny
out() { output "$dir/out" "$program" "$@"; }

head -c 3000 README.md >"$dir/text"
shape="--layers 1 --heads 2 --channels 32 --seq-len 16 --log-every 0 --data $dir/text"
"$program" $shape --steps 60 --batch 4 --total-batch 128 --lr 1e-2 --warmup 2 --save-every 30 --sample-every 0 --out "$dir/run" >"$dir/train" 2>&1
last=$dir/run/step_00000060

# ---- convert
check "a Hugging Face directory becomes an llm.c file" "$program" convert $hf "$dir/float.bin"
check "... of the very bytes that llm.c's exporter wrote" same_files "$dir/float.bin" $bin/model_fp32.bin
check "... and with --bf16 a rounded one" "$program" convert $hf "$dir/rounded.bin" --bf16
check "... likewise" same_files "$dir/rounded.bin" $bin/model_bf16.bin
check "an llm.c file becomes a directory" "$program" convert $bin/model_fp32.bin "$dir/directory"
check "... which becomes the file again" "$program" convert "$dir/directory" "$dir/again.bin"
check "... bit for bit" same_files "$dir/again.bin" $bin/model_fp32.bin
check "a run's newest checkpoint becomes an llm.c file" "$program" convert "$dir/run" "$dir/run.bin"
check "... and that a directory with the very weights" "$program" convert "$dir/run.bin" "$dir/run_hf"
check "... bit for bit" same_files "$dir/run_hf/model.safetensors" "$last/model.safetensors"
check "... and its tokenizer" same_files "$dir/run_hf/tokenizer.json" "$last/tokenizer.json"
refuses 2 "exists already" "an existing file is not replaced" "$program" convert $hf "$dir/float.bin"
refuses 2 "needs two names" "one name" "$program" convert $hf
refuses 2 "only for llm.c files" "--bf16 for a directory" "$program" convert $hf "$dir/x" --bf16
refuses 3 "no such file" "a name that is none" "$program" convert "$dir/nowhere" "$dir/x"
refuses 1 "cannot create" "a directory that is none" "$program" convert $hf "$dir/a/b.bin"

# ---- verify
verifies() { says "$2" "$program" verify "$1"; }
check "verify knows a Hugging Face directory" verifies $hf "safetensors, F32): 2 layers, 4 heads, 32 channels, sequences of 24, vocabulary 97"
check "... an llm.c model" verifies $bin/model_bf16.bin "llm.c model, version 5"
check "... a checkpoint" verifies "$last" "a complete checkpoint after 60 updates on"
check "... a run" verifies "$dir/run" "step_00000030: a complete checkpoint"
check "... text" verifies "$dir/text" "$(($(wc -c <"$dir/text"))) bytes of text"
refuses 3 "damaged" "... and a damaged checkpoint" sh -c "cp -r '$last' '$dir/bad' && printf x >>'$dir/bad/config.json' && '$program' verify '$dir/bad'"
refuses 2 "needs the names" "verify of nothing" "$program" verify
refuses 3 "no such file" "a name that is none" "$program" verify "$dir/nowhere"
head -c 100000 $hf/model.safetensors >"$dir/directory/model.safetensors"
refuses 3 "cut?" "weights that are cut" "$program" verify "$dir/directory"

# ---- sample
check "the recorded greedy continuation" out sample --model $hf --prompt "85 20 17" --temperature 0 --tokens 21
check "... token by token" grep -qx "85 20 17 82 82 55 55 17 17 17 17 17 17 75 77 35 69 17 93 28 28 28 28 28" "$dir/out"
check "top-k 1 is greedy" out sample --model $bin/model_fp32.bin --prompt "85,20,17" --top-k 1 --temperature 2 --tokens 21
check "... token by token" grep -qx "85 20 17 82 82 55 55 17 17 17 17 17 17 75 77 35 69 17 93 28 28 28 28 28" "$dir/out"
check "a tiny top-p is greedy" out sample --model $hf --prompt "85 20 17" --top-p 1e-9 --temperature 2 --tokens 21
check "... token by token" grep -qx "85 20 17 82 82 55 55 17 17 17 17 17 17 75 77 35 69 17 93 28 28 28 28 28" "$dir/out"
words() { out sample --model $hf --prompt 1 --tokens "$1" $2 && test "$(wc -w <"$dir/out")" -eq "$3"; }
ids_below() { # LIMIT: every word of the last output is a number from 0 to LIMIT - 1, and there are many
    tr ' ' '\n' <"$dir/out" | awk -v limit="$1" 'NF { n++; if ($1 !~ /^[0-9]+$/ || $1 >= limit) exit bad = 1 } END { exit bad || n < 1000 }'
}
for n in 0 23 24 25 240; do
    check "$n tokens, the context being 24" words $n "" $((n + 1))
done
check "--no-slide stops at the end of the context" words 240 --no-slide 25
check "2000 tokens at a temperature of a million" out sample --model $hf --tokens 2000 --temperature 1e6
check "... are ids below the vocabulary of 97, though memory has 128" ids_below 97
text() { # FILE OPTIONS...: what the run's model writes
    into=$dir/$1
    shift
    output "$into" "$program" sample --model "$dir/run" "$@"
}
check "a prompt is continued" text a --prompt The --seed 5
check "... it comes first" grep -q '^The' "$dir/a"
check "the same seed on one thread" text b --prompt The --seed 5 --threads 1
check "... says the same" same_files "$dir/a" "$dir/b"
check "another seed" text b --prompt The --seed 6
check "... says something else" other_files "$dir/a" "$dir/b"
cp "$dir/b" "$dir/seed6" 2>/dev/null
check "two texts" text b --prompt The --seed 5 --count 2
check "... have one line between them" same "$(grep -cx -e --- "$dir/b")" 1
cat "$dir/a" >"$dir/both" 2>/dev/null && echo --- >>"$dir/both" && cat "$dir/seed6" >>"$dir/both"
check "... and are those of this seed and the next" same_files "$dir/b" "$dir/both"
check "500 bytes of noise" text b --temperature 9 --tokens 500
check "... are printed as UTF-8" output "$dir/c" iconv -f UTF-8 -t UTF-8 "$dir/b"
check "a prompt of several bytes a character" prints '^déjà 😀' "$program" sample --model "$dir/run" --prompt 'déjà 😀'
check "bytes as ids" text b --prompt '84 104' --ids --tokens 3
check "... two and three more" same "$(wc -w <"$dir/b")" 5
refuses 2 "is not UTF-8" "a prompt that is not UTF-8" "$program" sample --model "$dir/run" --prompt "$(printf 'a\377')"
refuses 2 "'97' is not a token id" "an id out of range" "$program" sample --model $hf --prompt "96 97"
refuses 2 "'abc' is not a token id" "text where tokens are not bytes" "$program" sample --model $hf --prompt "abc"
refuses 2 "needs --model" "sample without a model" "$program" sample
refuses 2 "did you mean --temperature" "a misspelt option" "$program" sample --model $hf --temprature 1
echo some text >"$dir/stray.txt"
refuses 2 "did you mean --data $dir/stray.txt" "a file without its option, after a number" \
    "$program" --batch 4 "$dir/stray.txt"
refuses 2 "did you mean --tokens?" "an option of training, whose end is one of sample" "$program" sample --model $hf --sample-tokens 4
refuses 3 "no such file" "a model that is none" "$program" sample --model "$dir/nowhere"
for command in sample eval verify convert; do
    check "$command --help" prints "^Usage: train_gpt2 $command" "$program" $command --help
done

refuses 2 "'smaple' is not a command; did you mean sample?" "a misspelt command" "$program" smaple --model $hf
refuses 2 "is not a command; there are" "an unknown word" "$program" shakespeare.txt

# ---- eval
check "the recorded loss of one target" out eval --model $hf --ids "25 63"
check "... is 4.990044" grep -q '^loss 4\.99004[0-9]* nats per token, perplexity 146\.9[0-9]*, 1 token$' "$dir/out"
check "the recorded logits" prints '^logits 0\.03101[0-9]* -0\.46746[0-9]* -1\.10083[0-9]* ' "$program" eval --model $hf --ids 25 --logits
loss_of() { "$program" eval --model $hf --ids "$1" | sed -n 's/^loss \([0-9.]*\) .*/\1/p'; }
# -log softmax(logits)[ID], from the logits after IDS.
loss_of_last() { # IDS ID
    "$program" eval --model $hf --ids "$1" --logits | awk -v id="$2" '/^logits/ {
        for (i = 2; i <= NF; i++) sum += exp($i)
        printf "%.9f", log(sum) - $(id + 2) }'
}
check "the loss of three ids is the mean of what two of them have" near "$(loss_of "25 63 9")" \
    "($(loss_of "25 63") + $(loss_of_last "25 63" 9)) / 2" 1e-5
loss() { sed -n 's/^loss \([0-9.]*\).*/\1/p' "$dir/out"; }
want=$(sed -n 's/.*"event":"val","step":60,"loss":\([0-9.]*\).*/\1/p' "$dir/run/metrics.jsonl")
check "the validation loss that training logged" out eval --model "$dir/run" --data "$dir/text" --val-fraction 0.1
check "... again" near "$(loss)" "$want" 1e-6
check "another batch size" out eval --model "$last" --data "$dir/text" --val-fraction 0.1 --batch 3
check "... the same loss" near "$(loss)" "$want" 1e-6
check "shorter sequences" out eval --model "$last" --data "$dir/text" --seq-len 8
if has_ranks; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    check "two ranks" output "$dir/out" mpirun --oversubscribe -np 2 "$program" eval --model "$last" --data "$dir/text" --val-fraction 0.1
    check "... the same loss" near "$(loss)" "$want" 1e-6
else
    skip "no Open MPI"
fi
refuses 2 "is not known; name it with --tokenizer" "text for a model whose tokenizer is not known" "$program" eval --model $hf --data README.md
refuses 2 "at most 24" "sequences longer than the model's" "$program" eval --model $hf --data README.md --seq-len 25

# ---- train from weights
check "training starts from weights" "$program" $shape --model "$last" --seq-len 16 --steps 2 --total-batch 128 --batch 4 --out "$dir/tuned"
first=$(sed -n 's/.*"event":"val","step":0,"loss":\([0-9.]*\).*/\1/p' "$dir/tuned/metrics.jsonl")
check "... with their loss" near "$first" "$want" 1e-6
check "... of shorter sequences" "$program" --model "$last" --seq-len 8 --data "$dir/text" --steps 2 --total-batch 64 --log-every 0 --out "$dir/shorter"
refuses 2 "the weights to start from have 1" "another shape than the weights'" "$program" --model "$last" --layers 2 --data "$dir/text"
refuses 2 "neither a shape" "a model that is neither shape nor file" "$program" --model "$dir/nowhere"
refuses 2 "is not known; name it with --tokenizer" "text for a model whose tokenizer is not known" "$program" --model $hf --data "$dir/text"
finish cli_commands
