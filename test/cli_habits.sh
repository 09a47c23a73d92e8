#!/bin/sh
# cli_habits.sh: what people bring to the program from elsewhere is used as it is meant, or refused with a way out.
. test/cli.sh
export OMP_WAIT_POLICY=passive # the machine may be busy
root=$(pwd)
make_data=$(cd "$build" && pwd)/make_data
hf=$root/test/fixtures/hf_tiny
shape="--layers 1 --heads 2 --channels 16 --seq-len 16 --batch 4 --total-batch 64 --threads 1 --log-every 0 --sample-every 0 --val-every 0 --steps 2"
case ${TEST_NOW:-} in '' | /*) ;; *) TEST_NOW=$root/$TEST_NOW ;; esac
cd "$dir" || exit 1
# Something to read: 4,000 numbers.
awk 'BEGIN { for (i = 1; i <= 4000; i++) print i }' >t.txt
train() { "$program" $shape "$@"; }
# Says TEXT on one of its two streams; or runs well and says nothing of it.
says_on_either() {
    local text=$1
    shift
    says "$text" sh -c 'exec "$@" 2>&1' sh "$@"
}
silent() {
    local text=$1
    shift
    output spoken "$@" 2>&1 && not grep -F -- "$text" spoken
}

# ---- names of files
mkdir parts && head -c 3000 t.txt >parts/train.txt && head -c 500 t.txt >parts/test.txt
check "a test set is not trained on" says "no file is named val: 1 file is training data; 1 named test is left out" \
    "$program" plan --data parts
check "... but its train file is" says "data       parts/train.txt: 2,699 targets" "$program" plan --data parts
check "eval scores the test set alone" says "499 tokens of parts/test.txt" sh -c \
    "'$program' $shape --data parts --out of_parts >train.out && '$program' eval --model of_parts --data parts"
printf x >parts/test.bin
check "a broken test file does not stop a run" says "trained 2 updates" train --data parts --out unbroken
rm parts/test.bin
mkdir plain && cp t.txt plain/a.txt && cp t.txt plain/b.txt
check "where nothing is named, it is said" says "no file is named val: 2 files are training data" "$program" plan --data plain
for word in val valid validation dev eval; do
    mkdir "of_$word" && cp t.txt "of_$word/a.txt" && head -c 500 t.txt >"of_$word/x-$word.1.txt"
    check "$word as a word in a name is validation data" says "sequences of of_$word/x-$word.1.txt" "$program" plan --data "of_$word"
done
mkdir -p folders/train folders/test folders/dev && cp t.txt folders/train/a.txt && cp t.txt folders/dev/a.txt && cp t.txt folders/test/a.txt
check "folders are named for parts, too" says "data       folders/train/a.txt" "$program" plan --data folders
check "... each for its own" says "sequences of folders/dev/a.txt" "$program" plan --data folders
check "... and in globs" says "data       folders/train/a.txt" "$program" plan --data "folders/*/a.txt"
mkdir test && cp t.txt test/a.txt
check "a folder that the user names says nothing" says "data       test/a.txt" "$program" plan --data test
check "a file named by itself is data whatever its name" says "data       parts/test.txt" "$program" plan --data parts/test.txt

# ---- files that are not what their name says
# make_data writes the bytes of a text as tokens of many types; ids up to 57.
for type in raw4:uint32 raw8:int64; do
    kind=${type%%:*} name=${type##*:}
    "$make_data" "$kind" t.txt "$name.bin"
    refuses 3 "looks like $name tokens" "raw $name named .bin" train --data "$name.bin"
    refuses 3 "--data-type $name reads it so" "... with the way to read it" "$program" verify "$name.bin"
    check "... which is a way" says "18,892 targets" "$program" plan --data "$name.bin" --data-type "$name" --vocab 256 --val-fraction 0
    train --data "$name.bin" --data-type "$name" --vocab 256 --out "as_$name" >/dev/null 2>&1
done
"$make_data" raw t.txt uint16.bin
train --data uint16.bin --vocab 256 --out as_uint16 >/dev/null 2>&1
check "... and the same tokens" same_files as_uint16/log.txt as_uint32/log.txt as_int64/log.txt
check "eval reads them, too" says "18892 tokens" "$program" eval --model as_uint32 --data uint32.bin --data-type uint32
refuses 3 "has another type" "a type that the header contradicts" sh -c "'$make_data' llmc t.txt shard.bin && '$program' $shape --data shard.bin --data-type uint32"
refuses 2 "it takes auto, uint8, uint16, int32, uint32 or int64" "a type that is none" train --data uint16.bin --data-type u16
"$make_data" swapped t.txt swapped.bin
for what in verify "plan --data" "eval --model $hf --data"; do
    refuses 3 "is a byte-swapped (big-endian) llm.c file: a shard of GPT-2 tokens" "a byte-swapped shard: $what" "$program" $what swapped.bin
done
head -c 8000 /dev/zero >zeros.bin
refuses 3 "all of its 8000 bytes are 0" "zeros" train --data zeros.bin
check "... unless one knows better" train --data zeros.bin --data-type uint16 --vocab 256 --out zeros
body() { head -c 5000 "$program"; } # bytes that are not text
for kind in 'GGUF:GGUF model' 'lmgg:ggml model' 'tjgg:ggml model' 'PAR1:Parquet table'; do
    { printf %s "${kind%%:*}" && body; } >foreign.bin
    refuses 3 "is a ${kind##*:}" "a ${kind##*:} as data" train --data foreign.bin
    refuses 3 "is a ${kind##*:}" "... and as a model" "$program" sample --model foreign.bin
done
echo "GGUF is the name of a file format, and this is text about it, which may be read." >about.txt
check "text that begins like a GGUF model is text" says "bytes of text" "$program" verify about.txt

# ---- as models
{ printf 'PK\003\004' && body; } >model.pt
refuses 3 "is a zip archive (PyTorch's .pt and .bin are such), but weights are expected; give safetensors" "PyTorch's .pt" "$program" sample --model model.pt
printf '<!DOCTYPE html>\n<html><body>404</body></html>\n' >page.bin
refuses 3 "is an HTML page, but weights are expected: a failed download?" "an error page" "$program" sample --model page.bin
printf 'version https://git-lfs.github.com/spec/v1\noid sha256:ab\nsize 548105171\n' >lfs.bin
refuses 3 "is a Git LFS pointer, not the data, but weights are expected; fetch it (git lfs pull)" "a pointer" "$program" sample --model lfs.bin
refuses 3 "is an llm.c file: a shard of GPT-2 tokens, but weights are expected; give it as --data" "data as a model" "$program" sample --model shard.bin
check "a .safetensors file stands for its directory" prints '^loss 4\.99004' "$program" eval --model "$hf/model.safetensors" --ids '25 63'
check "... for verify, too" says "2 layers, 4 heads, 32 channels" "$program" verify "$hf/model.safetensors"
mkdir -p empty cache/snapshots && cp -r "$hf" cache/snapshots/abc
refuses 3 "empty/config.json: no such file: the directory holds no model" "a directory without a model" "$program" sample --model empty
refuses 3 "the model is in cache/snapshots/abc: give that" "Hugging Face's cache" "$program" sample --model cache
cp "$hf/model.safetensors" alone.safetensors
refuses 3 "config.json is missing beside alone.safetensors" "... which must have a config.json" "$program" sample --model alone.safetensors
ln -s nowhere.bin dangling.bin
refuses 3 "dangling.bin: is a link to nowhere.bin, which does not exist" "a dangling link as data" train --data dangling.bin
refuses 3 "dangling.bin: is a link to nowhere.bin, which does not exist" "... as a model" "$program" sample --model dangling.bin
refuses 3 "dangling.bin: is a link to nowhere.bin, which does not exist" "... to train from" "$program" --model dangling.bin
refuses 2 "standard input" "data from standard input" train --data -
mkfifo pipe
refuses 3 "is a pipe or device" "data from a pipe" train --data pipe

# ---- character data
mkdir chars && "$make_data" raw t.txt chars/train.bin && cp chars/train.bin chars/val.bin
check "ids far below GPT-2's vocabulary give a hint" says_on_either "give --vocab 58" "$program" plan --data chars
check "... that is not given to who gave a vocabulary" silent "--vocab 58" "$program" plan --data chars --vocab 256
# pickle.dump({'vocab_size': 65}), protocol 4
printf '\200\004\225\023\000\000\000\000\000\000\000}\224\214\012vocab_size\224KAs.' >chars/meta.pkl
check "nanoGPT's meta.pkl says the vocabulary" says "vocabulary 65 (128 in memory)" "$program" plan --data chars
check "... which is said" says "meta.pkl beside it gives a vocabulary of 65" "$program" plan --data chars
printf '\200\004cos\nsystem\n(S"touch ran"\ntR.' >chars/meta.pkl
check "... and is never run" says "vocabulary 50,257" "$program" plan --data chars
check "... indeed" test ! -e ran

# ---- llm.c's and nanoGPT's command lines
check "llm.c's options are read" says "-l is --lr here" "$program" plan -i t.txt -l 6e-4 -b 4 -t 16 -d 64 -u 7 -x 20 -c 0.1
check "... as they are meant" says "step 6 0.0006, step 7 0.0006" "$program" plan -i t.txt -l 6e-4 -b 4 -t 16 -d 64 -u 7 -x 20 -c 0.1
check "... in training" prints '^-i is --data here, -o is --out here, -l is --lr here, -q is --min-lr 0.001 here;' train -i t.txt -o from_llmc -l 1e-2 -q 0.1
refuses 2 "-a 1 (of llm.c) has no counterpart" "what has no counterpart" train -a 1
refuses 2 "did you mean --layers=4" "nanoGPT's --n_layer=4" "$program" --n_layer=4 --max_iters=2000
refuses 2 "did you mean --count=3" "... of its sample.py" "$program" sample --num_samples=3
refuses 2 "settings are not read from Python files" "nanoGPT's config file" "$program" config/train_shakespeare_char.py
refuses 2 "settings are not read from Python files" "... after train" "$program" train config/train_shakespeare_char.py
refuses 2 "did you mean --data t.txt?" "a file whose option was left out" "$program" train t.txt
refuses 2 "to train on it: --data t.txt" "... and the command, too" "$program" t.txt
refuses 2 "did you mean --model of_parts?" "a model whose option was left out" "$program" sample of_parts
refuses 2 "quote a glob, so that the shell leaves it to --data" "a glob without quotes" train --data parts/*.txt
refuses 3 "there is no directory nowhere/" "a glob in a directory that does not exist" train --data "nowhere/*.bin"
refuses 2 "did you mean gpt2-xl?" "a misspelt shape" train --model GPT2-XL
refuses 2 "--resume has no value; it takes auto, must, never, a checkpoint or the directory of a run" "--resume alone" train --resume

cd "$root" || exit 1
finish cli_habits
