#!/bin/sh
# cli_text.sh: text in, text out: a text becomes tokens of GPT-2's vocabulary, a model learns them, is stopped and
# resumed, generates text, and is scored; on one rank and on two.
. test/cli.sh
export OMP_WAIT_POLICY=passive # the machine may be busy
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
hella=test/fixtures/hellaswag
out() { output "$dir/out" "$program" "$@"; }

# ---- HellaSwag: figures of an independent program, for both formats, any batch and any number of ranks
want=$(tail -n 1 $hella/expected.jsonl) # {"examples": 30, "acc": 4, "acc_norm": 6}
acc=$(echo "$want" | sed 's/.*"acc": \([0-9]*\).*/\1/') norm=$(echo "$want" | sed 's/.*"acc_norm": \([0-9]*\).*/\1/')
wanted=$(awk "BEGIN { printf \"acc %.4f (%d of 30), acc_norm %.4f (%d)\", $acc / 30, $acc, $norm / 30, $norm }")
score() { # FILE BATCH RANKS
    if [ "$3" = 1 ]; then
        "$program" eval --model $hella/model --hellaswag "$1" --batch "$2" >"$dir/out"
    else
        mpirun --oversubscribe -np "$3" "$program" eval --model $hella/model --hellaswag "$1" --batch "$2" >"$dir/out"
    fi && grep -qxF -- "$wanted" "$dir/out"
}
ranks='1'
if has_ranks; then ranks='1 2 3'; else skip "no Open MPI"; fi
for r in $ranks; do
    for file in examples.jsonl examples.bin; do
        check "$file on $r ranks has the recorded figures" score $hella/$file 4 "$r"
    done
done
check "... and with --batch 1" score $hella/examples.jsonl 1 1
check "the first 7 examples" out eval --model $hella/model --hellaswag $hella/examples.bin --hellaswag-examples 7
check "... are 7" grep -qF "of 7), acc_norm" "$dir/out"
refuses 3 "line 2: label is 9, but 0 to 3" "a label out of range" sh -c "sed '2s/\"label\": [0-3]/\"label\": 9/' $hella/examples.jsonl >'$dir/h' && '$program' eval --model $hella/model --hellaswag '$dir/h'"
refuses 3 "line 1: context and completion have" "an example longer than the context" "$program" eval --model $hella/model --hellaswag $hella/examples.jsonl --seq-len 16
: >"$dir/empty"
refuses 3 "has no example" "a file of nothing" "$program" eval --model $hella/model --hellaswag "$dir/empty"
refuses 3 "no such file" "a file that is none" "$program" eval --model $hella/model --hellaswag "$dir/nowhere"
refuses 2 "name it with --tokenizer" "text for a model whose tokenizer is not known" "$program" eval --model test/fixtures/hf_tiny --text hello
refuses 3 "name it with --tokenizer" "... and such examples" "$program" eval --model test/fixtures/hf_tiny --hellaswag $hella/examples.jsonl
refuses 2 "give one of them" "two things to evaluate" "$program" eval --model $hella/model --text hello --ids 1
refuses 2 "has 50257 tokens, but the model's vocabulary is 320" "a tokenizer of more tokens" "$program" eval --model $hella/model --text hello --tokenizer gpt2
refuses 2 "needs a file of examples; name it with --hellaswag" "a bound without a file" "$program" --hellaswag-examples 3
refuses 2 "needs a file of examples; name it with --hellaswag" "... likewise" "$program" eval --model $hella/model --hellaswag-examples 3
refuses 2 "--val-every 0 makes none" "a score at validations that there are not" "$program" --model $hella/model --hellaswag $hella/examples.bin \
    --total-batch 192 --val-every 0

# ---- the loss of a text, also in units that do not depend on tokens
check "a text" out eval --model $hella/model --text "two  words, and four more"
check "... has 25 bytes and 5 words" sh -c "grep -q '^bits per byte [0-9.]* over 25 bytes, perplexity [0-9.e+]* per word, 5 words' '$dir/out'"
check "... and bits per byte are its loss" awk '
    /^loss/ { sum = $2 * $8 } /^bits/ { bits = $4 } # loss L nats per token, perplexity P, N tokens
    END { d = sum / log(2) / 25 - bits; exit !(bits > 0 && d < 1e-6 && d > -1e-6) }' "$dir/out"
printf 'two  words, and four more' >"$dir/words"
sed 's/ of .*//' "$dir/out" >"$dir/again"
check "a file of this text" out eval --model $hella/model --data "$dir/words"
sed 's/ of .*//' "$dir/out" >"$dir/a"
check "... says the same" same_files "$dir/a" "$dir/again"

# ---- a book: tokenize, train, stop, resume, generate, score
sed -n '/^# train_gpt2/,/^## A run that/p' README.md >"$dir/book.txt"
check "a book becomes shards" out tokenize "$dir/book.txt" --tokenizer gpt2 --out "$dir/shards" --val-tokens 500
shape="--model gpt2 --layers 2 --channels 64 --heads 2 --seq-len 32 --batch 4 --total-batch 256 --lr 1e-2 --warmup 2
    --val-every 6 --save-every 6 --sample-every 6 --sample-tokens 16 --log-every 0 --hellaswag $hella/examples.jsonl
    --hellaswag-examples 3"
sed 's/"ctx": "[^"]*"/"ctx": "A man"/' $hella/examples.jsonl >"$dir/short.jsonl" # no longer than 32 tokens
shape=$(echo "$shape" | sed "s|--hellaswag [^ ]*|--hellaswag $dir/short.jsonl|")
# shellcheck disable=SC2086 # a list of options
train() { # RANKS OUT ARGUMENTS...
    R=$1 to=$2
    shift 2
    if [ "$R" = 1 ]; then
        output "$dir/train" "$program" $shape "$@" --out "$dir/$to"
    else
        output "$dir/train" mpirun --oversubscribe -np "$R" "$program" $shape "$@" --out "$dir/$to"
    fi
}
same_run() { # OUT OUT
    timeless "$dir/$1/metrics.jsonl" >"$dir/a" && timeless "$dir/$2/metrics.jsonl" >"$dir/b" && same_files "$dir/a" "$dir/b" &&
        same_files "$dir/$1/log.txt" "$dir/$2/log.txt" &&
        same_files "$dir/$1/step_00000012/model.safetensors" "$dir/$2/step_00000012/model.safetensors"
}
check "a model learns them" train 1 straight --data "$dir/shards" --steps 12
check "... its loss falls" sh -c "awk '\$2 == \"val\" { if (!first) first = \$3; last = \$3 } END { exit !(last < 0.8 * first) }' '$dir/straight/log.txt'"
check "... and is also said in bits per byte" grep -qE '^validation loss [0-9.]+ nats per token over [0-9]+ tokens, [0-9.]+ bits per byte$' "$dir/train"
check "log.txt has its score in the course's words" sh -c "grep -c '^[0-9]* hella 0\.[0-9]*\$\|^[0-9]* hella 1\.0*\$' '$dir/straight/log.txt' | grep -qx 3"
check "metrics.jsonl has both figures" sh -c "grep -c '\"event\":\"hella\",\"step\":[0-9]*,\"acc\":[0-9.]*,\"acc_norm\":[0-9.]*,\"examples\":3' '$dir/straight/metrics.jsonl' | grep -qx 3"
check "a sample is text, not numbers" sh -c "grep '\"event\":\"sample\"' '$dir/straight/metrics.jsonl' | grep -q '\"text\":\".*[A-Za-z]'"
for r in $ranks; do
    [ "$r" != 3 ] || continue
    check "stopped in the middle, $r ranks" train "$r" "parts$r" --data "$dir/shards" --steps 6 --decay-steps 12
    check "... and resumed" train "$r" "parts$r" --resume must --steps 12
    check "... it is the same run, byte for byte" same_run straight "parts$r"
done
check "it generates" out sample --model "$dir/straight" --prompt "It is déjà vu 😀" --tokens 12 --seed 4
check "... text that begins with the prompt" grep -q '^It is déjà vu 😀' "$dir/out"
check "... which is UTF-8" sh -c "iconv -f UTF-8 -t UTF-8 '$dir/out' >/dev/null"
check "... and is more than the prompt" sh -c "test \$(wc -c <'$dir/out') -gt 30"
cp "$dir/out" "$dir/again"
printf 'It is déjà vu 😀' >"$dir/prompt"
from_input() { "$program" "$@" <"$dir/prompt"; }
check "a prompt from standard input" output "$dir/a" from_input sample --model "$dir/straight" --prompt - --tokens 12 --seed 4
check "... is the same prompt" same_files "$dir/a" "$dir/again"
check "ids if asked for" prints '^1026 318( [0-9]+){3}$' "$program" sample --model "$dir/straight" --prompt '1026 318' --ids --tokens 3
check "without a prompt" output "$dir/a" "$program" sample --model "$dir/straight" --tokens 5 --seed 9 --ids
check "... and after the end of text" out sample --model "$dir/straight" --tokens 5 --seed 9 --ids --prompt 50256
sed 's/^50256 //' "$dir/out" >"$dir/b"
check "... it says the same" same_files "$dir/a" "$dir/b"
check "it is scored" out eval --model "$dir/straight" --hellaswag "$dir/short.jsonl" --hellaswag-examples 3
check "... as training scored it" sh -c "awk '\$2 == \"hella\" { last = \$3 } END { printf \"acc_norm %.4f\", last }' '$dir/straight/log.txt' | grep -qf - '$dir/out'"

# ---- the text itself
check "a text file is encoded at start" train 1 encoded --data "$dir/book.txt" --steps 6 --save-every 3
check "... and how many tokens it has is said" grep -qE '[0-9,]+ bytes of text were encoded: [0-9,]+ tokens' "$dir/train"
check "... in GPT-2's vocabulary" grep -q 'vocabulary 50,257' "$dir/train"
rm -rf "$dir/encoded/step_00000006"
cp "$dir/encoded/log.txt" "$dir/whole" 2>/dev/null
check "... again when the run is resumed" train 1 encoded --resume must
check "... and the run is the same" same_files "$dir/encoded/log.txt" "$dir/whole"
rm -rf "$dir/encoded/step_00000006"
cp "$dir/book.txt" "$dir/kept"
awk 'NR >= 20 && !changed { changed = sub(/e/, "a") } 1' "$dir/kept" >"$dir/book.txt"
refuses 2 "data" "a text with another letter in its middle" "$program" --out "$dir/encoded" --resume must
cat "$dir/kept" >"$dir/book.txt"
printf 'more' >>"$dir/book.txt"
refuses 2 "data" "a text that has changed" "$program" --out "$dir/encoded" --resume must
plan() { "$program" plan --data "$dir/book.txt" "$@"; }
check "--tokenizer bytes" says 'tokenizer  bytes, 256 tokens' plan --model gpt2 --tokenizer bytes
check "tiny reads bytes" says 'tokenizer  bytes, 256 tokens' plan
check "... unless it is named" says 'tokenizer  gpt2, 50,257 tokens' plan --tokenizer gpt2
refuses 2 "has 50257 tokens, but the model's vocabulary is 300" "a vocabulary that is too small" "$program" --data "$dir/book.txt" --tokenizer gpt2 --vocab 300
refuses 3 "no such tokenizer" "a tokenizer that is none" "$program" --data "$dir/book.txt" --tokenizer "$dir/nowhere"

# ---- weights bring their tokenizer
check "weights with a tokenizer of 320 tokens" output "$dir/train" "$program" --model $hella/model --data "$dir/book.txt" --steps 2 \
    --total-batch 192 --batch 2 --log-every 0 --sample-tokens 8 --val-tokens 200 --out "$dir/tuned"
check "... are tuned on text in it" grep -q "^tokenizer  $hella/model, 320 tokens" "$dir/train"
check "... at a rate for that" grep -q 'lr 3e-05  min-lr 3e-06' "$dir/train"
check "... and the new model generates text" out sample --model "$dir/tuned" --prompt "The café" --tokens 4
check "... as text" grep -q '^The café' "$dir/out"
refuses 2 "is above --lr 3e-05" "a least rate above that" "$program" --model $hella/model --data "$dir/book.txt" --min-lr 1e-4

check "a model that is converted keeps it" "$program" convert $hella/model "$dir/converted"
speak() { # FILE ARGUMENTS...
    into=$dir/$1
    shift
    output "$into" "$program" sample --prompt "The café" --tokens 9 --seed 2 "$@"
}
check "... and generates" speak b --model "$dir/converted"
check "... (as does the one it was made of)" speak a --model $hella/model
check "... as before" same_files "$dir/a" "$dir/b"
check "an llm.c file has no tokenizer of 320 tokens" "$program" convert $hella/model "$dir/model.bin"
refuses 2 "is not a token id" "... and takes no text" "$program" sample --model "$dir/model.bin" --prompt "The café"
check "... until it is named" speak b --model "$dir/model.bin" --tokenizer $hella/model
check "... and says the same" same_files "$dir/a" "$dir/b"

# ---- shards know their tokenizer
check "shards of bytes" "$program" tokenize "$dir/book.txt" --tokenizer bytes --out "$dir/bytes"
of_shards() { "$program" plan --data "$@"; }
check "... become a model of bytes" says 'tokenizer  bytes, 256 tokens' of_shards "$dir/bytes"
check "... also by the name of one" says 'tokenizer  bytes, 256 tokens' of_shards "$dir/bytes/tokens_train_000001.bin"
check "shards of 320 tokens" "$program" tokenize "$dir/book.txt" --tokenizer $hella/model --out "$dir/320"
check "... suit the model that has them" says "tokenizer  $hella/model, 320 tokens" of_shards "$dir/320" --model $hella/model --total-batch 192
refuses 2 "was made with the tokenizer bytes, but the model's is gpt2" "another vocabulary's model" "$program" --data "$dir/bytes" --vocab 50257
refuses 2 "was made with the tokenizer gpt2" "another tokenizer" "$program" --data "$dir/shards" --tokenizer bytes

# ---- the course's data
mkdir "$dir/here"
in_here() { (cd "$dir/here" && output "$dir/out" "$program" "$@"); }
small="--model gpt2 --layers 1 --channels 32 --heads 1 --seq-len 16 --total-batch 64 --batch 4 --steps 1 --val-every 0 --sample-every 0 --save-every 0"
# shellcheck disable=SC2086 # a list of options
check "--model gpt2 without data" in_here $small
check "... says how to get the course's" sh -c "grep -qx '    dev/data.sh fineweb-edu' '$dir/out' && grep -q 'mpirun -np 8 ./train_gpt2cu --model gpt2' '$dir/out'"
check "... and trains on the built-in text meanwhile" grep -q '^data       the built-in text' "$dir/out"
mkdir -p "$dir/here/data/fineweb-edu"
cp "$dir/shards"/*val*.bin "$dir/here/data/fineweb-edu/edu_fineweb_val_000000.bin" 2>/dev/null
cp "$dir/shards"/*train*.bin "$dir/here/data/fineweb-edu/edu_fineweb_train_000001.bin" 2>/dev/null
# shellcheck disable=SC2086 # a list of options
check "with them where dev/data.sh puts them" in_here $small
check "... it trains on them" grep -q '^data       data/fineweb-edu/edu_fineweb_train_000001.bin' "$dir/out"
finish cli_text
