#!/bin/sh
# cli_train.sh: the program trains; what it logs is true; what must not change a run does not.
. test/cli.sh
make_data=$build/make_data
shape="--layers 2 --heads 2 --channels 32 --seq-len 16 --vocab 256 --val-every 0 --sample-every 0 --log-every 0"
short="$shape --batch 4 --total-batch 160 --warmup 2"

# Trains in $dir/NAME with the rest of the arguments.
train() {
    name=$1
    shift
    output "$dir/$name.out" "$program" $short --out "$dir/$name" "$@" 2>"$dir/$name.err" || { cat "$dir/$name.err"; return 1; }
}
metrics() { timeless "$dir/$1/metrics.jsonl"; }
records() { metrics "$1" >"$dir/a" && metrics "$2" >"$dir/b"; }
same_run() { records "$1" "$2" && same_files "$dir/a" "$dir/b"; } # two runs have the same records
other_run() { records "$1" "$2" && other_files "$dir/a" "$dir/b"; }
field() { sed -n "s/.*\"event\":\"train\".*\"$2\":\"\{0,1\}\([^,\"}]*\).*/\1/p" "$dir/$1/metrics.jsonl"; }
last_loss() { field "$1" loss | tail -n 1; }
text=$dir/text.txt
awk 'BEGIN { for (i = 0; i < 700; i++) printf "%d squared is %d\n", i, i * i }' >"$text"

# ---- it learns
check "50 updates run" train fifty --data $text --steps 50 --lr 1e-2
first=$(field fifty loss | head -n 1)
check "the loss starts near ln 256 and falls" less "$(last_loss fifty)" "$first - 1.5"
check "the first loss is near ln 256 = 5.545" near "$first" 5.545 0.03
check "one train record a step" test "$(field fifty step | wc -l)" -eq 50
check "log.txt has a line a step in the course's form" sh -c "[ \$(grep -cE '^[0-9]+ train [0-9.]+\$' '$dir/fifty/log.txt') -eq 50 ]"

# ---- the same run
train base --data $text --steps 8
check "a run repeats bit for bit" train again --data $text --steps 8
check "each update saw exactly --total-batch tokens" same "$(field fifty tokens | sort -u)" 160
check "... its records are the same" same_run base again
for threads in 1 2 3; do
    train threads$threads --data $text --steps 8 --threads $threads
    check "$threads threads change no bit" same_run base threads$threads
done
check "--recompute" train recompute --data $text --steps 8 --recompute
check "... changes no bit" same_run base recompute
train other --data $text --steps 8 --seed 43
check "another seed is another run" other_run base other

# ---- the same update, however it is cut
for batch in 1 3 7 10; do
    train batch$batch --data $text --steps 8 --batch $batch
    check "micro-batches of $batch sequences serve the same sequences" same "$(field batch$batch data)" "$(field base data)"
    check "micro-batches of $batch sequences give the same loss" near "$(last_loss batch$batch)" "$(last_loss base)" 1e-5
    check "micro-batches of $batch sequences give the same norm" near "$(field batch$batch norm | tail -n 1)" "$(field base norm | tail -n 1)" 1e-4
done

# ---- the same tokens in any file
for kind in llmc npy npy4 raw; do
    $make_data $kind $text "$dir/tokens_$kind.$([ $kind = llmc ] || [ $kind = raw ] && echo bin || echo npy)"
    train $kind --data "$dir"/tokens_$kind.* --steps 8
    check "the same tokens as $kind give the same sequences and losses" same_run base $kind
done
head -c 3000 $text >"$dir/part1.txt" && tail -c +3001 $text >"$dir/part2.txt"
train parts --data "$dir/part1.txt" --data "$dir/part2.txt" --steps 8
check "a text in two files is the same stream" same_run base parts
train glob --data "$dir/part*.txt" --steps 8
check "a glob finds them in name order" same_run base glob

# ---- ragged ends: an epoch of 129 tokens is 8 sequences of 16
head -c 129 $text >"$dir/exact.txt"
head -c 139 $text >"$dir/ragged.txt" # 138 targets: 8 sequences and one of 10
train ragged --data "$dir/ragged.txt" --val-fraction 0 --steps 9 --total-batch 16 --batch 1 --no-shuffle
check "a short last sequence is served with its own weight" same "$(field ragged tokens | tail -n 1)" 10
check "the others are whole" same "$(field ragged tokens | head -n 8 | sort -u)" 16
train ragged10 --data "$dir/ragged.txt" --val-fraction 0 --steps 4 --batch 4
train ragged3 --data "$dir/ragged.txt" --val-fraction 0 --steps 4 --batch 3
check "updates across epoch edges see the same sequences" same "$(field ragged10 data)" "$(field ragged3 data)"
check "... the same tokens" same "$(field ragged10 tokens)" "$(field ragged3 tokens)"
check "... and learn the same" near "$(last_loss ragged10)" "$(last_loss ragged3)" 1e-5
train epoch --data "$dir/exact.txt" --val-fraction 0 --epochs 2 --total-batch 64
check "--epochs 2 of 8 sequences at 4 sequences an update are 4 updates" test "$(field epoch step | wc -l)" -eq 4

# ---- validation
train val --data $text --steps 4 --val-every 2
check "validation runs before, during and at the end" sh -c "[ \$(grep -c '\"event\":\"val\"' '$dir/val/metrics.jsonl') -eq 3 ]"
bytes=$(wc -c <$text)
targets=$(awk "BEGIN { n = $bytes; print n - int(n * 0.9) - 1 }")
check "it covers every target of the last tenth" grep -q "\"event\":\"val\".*\"tokens\":$targets[,}]" "$dir/val/metrics.jsonl"
val_loss() { sed -n 's/.*"event":"val".*"loss":\([^,}]*\).*/\1/p' "$dir/$1/metrics.jsonl" | tail -n 1; }
train val3 --data $text --steps 4 --val-every 2 --batch 3
check "its loss does not depend on the batch size" near "$(val_loss val3)" "$(val_loss val)" 1e-5
for n in 65 64 2; do
    head -c $n $text >"$dir/val_$n.txt"
    train val$n --data $text --val "$dir/val_$n.txt" --steps 1 --val-every 1
    check "a validation file of $n tokens has $((n - 1)) targets" grep -q "\"event\":\"val\".*\"tokens\":$((n - 1))[,}]" "$dir/val$n/metrics.jsonl"
done
printf x >"$dir/val_1.txt"
refuses 3 "val_1.txt" "a validation file of one token has no target" "$program" $short --data $text --val "$dir/val_1.txt" --val-every 1 --out "$dir/val1"

# ---- the learning rate is the schedule's
train rates --data $text --steps 20 --warmup 4 --lr 6e-4 --min-lr 6e-5
rate() { field rates lr | sed -n "$(($1 + 1))p"; }
check "step 0 has 0.00015 (chapter 27.2)" near "$(rate 0)" 1.5e-4 1e-12
check "step 3 has the peak" near "$(rate 3)" 6e-4 1e-12
check "step 4 still has it" near "$(rate 4)" 6e-4 1e-12
check "step 12 is half-way" near "$(rate 12)" 3.3e-4 1e-12
check "step 19, the last, is near the floor but above" less 6e-5 "$(rate 19)"

# ---- refusals
refuses 2 "63" "a total that is not a whole number of sequences is refused" "$program" $short --data $text --total-batch 63 --out "$dir/r"
refuses 2 "48 and 64" "... and names both its neighbours" "$program" $short --data $text --total-batch 63 --out "$dir/r"
refuses 2 "total-batch" "a total of 0" "$program" $short --data $text --total-batch 0 --out "$dir/r"
refuses 2 "total-batch" "a negative total" "$program" $short --data $text --total-batch -1 --out "$dir/r"
refuses 2 "heads" "channels not divisible by heads" "$program" $short --heads 3 --data $text --out "$dir/r"
refuses 2 "gpt2" "an unknown model names those there are" "$program" $short --model gpt5 --data $text --out "$dir/r"
large="--channels 64 --seq-len 1024 --total-batch 1024M --data $text"
refuses 1 "would fit" "a batch that no machine has the memory for names one that fits" "$program" $large --batch 1000k --out "$dir/large"
check "... before anything is made" test ! -e "$dir/large"
refuses 2 "already holds a run" "an --out with a run in it" "$program" $short --data $text --steps 1 --out "$dir/base"
check "... is untouched" same_run base again
check "--overwrite replaces it" train base --data $text --steps 2 --overwrite
check "... wholly" test "$(field base step | wc -l)" -eq 2
touch "$dir/file"
refuses 1 "file" "an --out below a file" "$program" $short --data $text --steps 1 --out "$dir/file/run"
check "d/e/f is made with its parents" "$program" $short --data $text --steps 1 --total-batch 16 --out "$dir/d/e/f"

# ---- numbers that are not finite
wild="--data $text --steps 9 --lr 1e30 --warmup 0 --clip 0"
refuses 4 "weight is not finite" "a learning rate of 1e30 ends with exit code 4 and the name of a tensor" "$program" $short $wild --out "$dir/nan"
check "no update after the first was logged" test "$(field nan step | wc -l)" -eq 1
"$program" $short $wild --nonfinite skip:3 --out "$dir/skip" >"$dir/skip.out" 2>"$dir/skip.err"
check "--nonfinite skip:3 leaves out 3 updates in a row and ends at the fourth" test $? -eq 4
check "... each with a warning" test "$(grep -c 'warning: step [123]: .*skipped' "$dir/skip.err")" -eq 3

# ---- what is printed
check "a short run" train few --data $text --steps 2
check "... prints no nan, inf or -100 %" not grep -iE '(^|[^a-z])(nan|inf)([^a-z]|$)|-100 ?%' "$dir/few.out" "$dir/fifty.out"
in_scratch() { (cd "$dir" && "$@"); }
check "steps are printed in the course's form" prints '^step +1 \| loss: [0-9.]+ \| lr [0-9.e-]+ \| norm: [0-9.]+ \| dt: [0-9.]+ms \| tok/sec: [0-9.]+' \
    in_scratch "$program" $short --log-every 1 --data "$text" --steps 2
check "without --out a run goes to out/run-0001" test -f "$dir/out/run-0001/metrics.jsonl"
train course --data $text --steps 1 --total-batch 16
check "the groups are printed in the course's form" grep -E '^ *num decayed parameter tensors: 10, with [0-9,]+ parameters' "$dir/course.out"
samples() { # FILE: the text that a run prints, its line of closing words apart
    output "$dir/printed" in_scratch "$program" $short --data "$text" --steps 2 --sample-every 1 --sample-tokens 40 --seed 3 &&
        grep -av 'tok/sec\|out/run\|peak memory' "$dir/printed" >"$dir/$1" && grep -qa 'sample:' "$dir/$1"
}
samples s1
check "samples are printed" samples s2
check "... and repeat with the seed" same_files "$dir/s1" "$dir/s2"
finish cli_train
