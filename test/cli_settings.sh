#!/bin/sh
# cli_settings.sh: what --resume does with each setting, option by option: adopted from the checkpoint where it is not
# given, and where it is given otherwise free to change, or refused by name as another run. The names are those that
# the program itself records, so that a new option must be put into the table below.
. test/cli.sh
export OMP_WAIT_POLICY=passive
head -c 700 README.md >"$dir/text" && head -c 750 README.md >"$dir/text2" && head -c 90 README.md >"$dir/val"
head -c 91 README.md >"$dir/val2"
text="--data $dir/text"
base="--layers 1 --heads 2 --channels 16 --seq-len 16 --batch 2 --total-batch 32 --warmup 1 --log-every 0"
base="$base --val-every 9 --sample-every 0 --save-every 1 --keep 0"

# OPTION KIND A B: A is given in the first start, B in another. KIND is
#   same   adopted; B makes another run, but for --force
#   shape  adopted; B does not fit the weights
#   free   adopted; B is taken
#   start  of one start alone: not adopted
#   plan   for `plan` alone: refused
# "*" is set below, or in cli_text.sh (hellaswag). A switch has on and off.
table="
model         free   tiny             gpt2
layers        shape  1                2
heads         shape  2                4
channels      shape  16               32
seq-len       same   16               8
vocab         shape  256              257
data          same   $dir/text        $dir/text2
val           free   $dir/val         $dir/val2
tokenizer     *      -                -
val-fraction  data   0.25             0.5
data-type     *      -                -
shuffle       same   off              on
seed          same   7                8
batch         free   2                1
total-batch   same   32               64
steps         free   2                3
epochs        *      -                -
recompute     free   on               off
threads       start  1                2
rank-timeout  start  33               34
hang-timeout  start  1801             1802
lr            same   0.5              0.25
min-lr        same   1e-05            1e-06
warmup        same   3                4
decay-steps   free   55               56
schedule      same   wsd              linear
beta1         same   0.5              0.25
beta2         same   0.5              0.25
eps           same   0.5              0.25
weight-decay  same   0.5              0.25
clip          same   0.5              0.25
nonfinite     free   skip:2           skip:3
exact         same   off              on
out           start  -                -
overwrite     *      -                -
resume        *      -                -
force         *      -                -
save-every    free   1                2
keep          free   0                3
keep-best     free   on               off
val-every     free   0                5
val-tokens    free   16               32
sample-every  free   0                7
sample-tokens free   5                6
log-every     free   0                9
progress      start  bar              lines
temperature   free   0.5              0.25
top-k         free   3                4
hellaswag     *      -                -
hellaswag-examples * -                -
rates         plan   2                2
ranks         plan   2                2
micro-steps   plan   2                2
"

# The option as it is given: VALUE on or off is a switch.
given() { # NAME VALUE
    case $2 in
    on) echo "--$1" ;;
    off) echo "--no-$1" ;;
    *) echo "--$1 $2" ;;
    esac
}
# What a checkpoint recorded.
recorded() { # CHECKPOINT NAME
    sed -n "/\"settings\":{/,/^  }/s/^ *\"$2\":\(.*[^,]\),\{0,1\}\$/\1/p" "$1/trainer_state.json" | tr -d '"'
}
as_recorded() { # VALUE
    case $1 in
    on) echo true ;;
    off) echo false ;;
    *) echo "$1" ;;
    esac
}
list() { # CHECKPOINT NAME: a list, divided by blanks
    sed -n "s/^    \"$2\":\[\(.*\)\],*\$/\1/p" "$1/trainer_state.json" | tr -d '"' | tr ',' ' '
}
has() { # CHECKPOINT NAME VALUE
    case $2 in
    data | val) same "$(list "$1" "$2")" "$3" ;;
    *) same "$(recorded "$1" "$2")" "$(as_recorded "$3")" ;;
    esac
}
# shellcheck disable=SC2046,SC2086 # lists
first() { speaks "$program" $base $([ "$1" = data ] || echo "$text") --out "$dir/first" --overwrite $(given "$1" "$2") --steps 2; }
# shellcheck disable=SC2086 # a list
further() { # OPTIONS...: continues from the first start's checkpoint, in a copy
    rm -rf "$dir/copy" && cp -R "$dir/first" "$dir/copy" && speaks "$program" --out "$dir/copy" --resume must --steps 3 "$@"
}
warned() { further "$@" --force 2>&1; }
second=$dir/copy/step_00000003
first=$dir/first/step_00000002

# ---- no option is forgotten
check "a run that records its settings" first seed 7
names=$(sed -n '/"settings":{/,/^  }/s/^    "\([a-z0-9-]*\)":.*/\1/p' "$first/trainer_state.json")
check "all that is recorded stands in the table" same "$(echo "$names" | sort)" \
    "$(echo "$table" | awk 'NF { print $1 }' | sort)"

# ---- each option of the table
echo "$table" | while read -r name kind a b; do [ -z "$name" ] || echo "$name|$kind|$a|$b"; done >"$dir/table"
while IFS='|' read -r name kind a b <&4; do
    refusal="--$name $(as_recorded "$b") makes another run"
    case $kind in
    free | same | shape | data)
        check "--$name $a" first "$name" "$a"
        [ "$name" = steps ] || check "... is recorded" has "$first" "$name" "$a"
        check "... a resumed run" further
        [ "$name" = steps ] || check "... adopts it" has "$second" "$name" "$a"
        ;;
    esac
    # shellcheck disable=SC2046 # the option and its value
    case $name:$kind in
    data:same | *:data) # what counts is the data themselves
        refuses 2 "--data (as it is now) makes another run" "another --$name is another run" further $(given "$name" "$b")
        check "... which --force allows" further $(given "$name" "$b") --force
        check "... and records" has "$second" "$name" "$b"
        ;;
    *:same)
        refuses 2 "$refusal" "--$name $b instead is another run" further $(given "$name" "$b")
        check "... which --force allows, with a warning" says "another run (--force)" warned $(given "$name" "$b")
        check "... and records" has "$second" "$name" "$b"
        check "--$name $a once more is the same run" further $(given "$name" "$a")
        ;;
    *:shape) refuses 2 "the weights to start from have $a" "--$name $b instead" further $(given "$name" "$b") ;;
    steps:free) ;; # every resumed run here is given other ones
    *:free)
        check "--$name $b instead is taken" further $(given "$name" "$b")
        check "... and recorded" has "$second" "$name" "$b"
        ;;
    *:plan) refuses 2 "--$name is an option of" "--$name is for plan" further $(given "$name" "$b") ;;
    out:start) ;; # a run may be moved: all resumed runs here are
    *:start)
        check "--$name $a" first "$name" "$a"
        check "... is recorded" has "$first" "$name" "$a"
        check "... but not adopted" further
        check "... by a resumed run" not has "$second" "$name" "$a"
        check "--$name $b instead is taken" further $(given "$name" "$b")
        check "... and recorded" has "$second" "$name" "$b"
        ;;
    esac
done 4<"$dir/table"

# ---- what the table leaves open
check "--tokenizer" first tokenizer bytes
check "... is recorded" has "$first" tokenizer bytes
check "... a resumed run" further
check "... has its checkpoint's own" has "$second" tokenizer null
refuses 2 "--tokenizer gpt2" "another tokenizer does not fit the weights" further --tokenizer gpt2
check "--epochs 1 instead of steps" "$program" $base $text --epochs 1 --out "$dir/epochs"
check "... is recorded" same "$(recorded "$(ls -d "$dir/epochs"/step_* | tail -n 1)" epochs)" 1
check "... a resumed run has its end" says "this run is finished" "$program" --out "$dir/epochs" --resume must
check "--overwrite and --force are of one start" first seed 7
check "... a resumed run" further --force
check "... does not overwrite, nor force the next" further
check "... as is recorded" same "$(recorded "$second" overwrite) $(recorded "$second" force)" "false false"
check "lists of several files are adopted whole" "$program" $base $text --data "$dir/text2" --val "$dir/val" --val "$dir/val2" \
    --out "$dir/first" --overwrite --steps 2
check "... by a resumed run" further
check "... training data" same "$(list "$second" data)" "$dir/text $dir/text2"
check "... validation data" same "$(list "$second" val)" "$dir/val $dir/val2"
refuses 2 "--data (as it is now) makes another run" "the same files in another order are another run" \
    further --data "$dir/text2" --data "$dir/text"

# ---- the counters, after skipped updates, at an epoch's edge, after a second resume
counter() { # CHECKPOINT: step updates skipped position tokens
    for name in step updates skipped position tokens; do sed -n "s/^  \"$name\":\([0-9]*\),\$/\1/p" "$1/trainer_state.json"; done | tr '\n' ' '
}
printf '%065d' 0 >"$dir/epoch" # 64 targets: 4 sequences of 16, two updates an epoch
epoch="--data $dir/epoch --val-fraction 0"
check "two updates, to the epoch's edge" "$program" $base $epoch --steps 2 --out "$dir/edge"
check "... are 4 sequences" same "$(counter "$dir/edge/step_00000002")" "2 2 0 4 64 "
check "... three more, in the next two" "$program" --out "$dir/edge" --resume must --steps 5
check "... are 10" same "$(counter "$dir/edge/step_00000005")" "5 5 0 10 160 "
check "... a second resume" "$program" --out "$dir/edge" --resume must --steps 6
check "... continues counting" same "$(counter "$dir/edge/step_00000006")" "6 6 0 12 192 "
check "the same six at once" "$program" $base $epoch --steps 6 --decay-steps 2 --out "$dir/once"
check "... count alike" same "$(counter "$dir/once/step_00000006")" "6 6 0 12 192 "
wild="--lr 1e30 --warmup 0 --clip 0 --nonfinite skip:4"
check "one update, then two that are skipped" "$program" $base $epoch $wild --steps 3 --out "$dir/skip"
check "... are counted: the data continue, AdamW's t does not" same "$(counter "$dir/skip/step_00000003")" "3 1 2 6 96 "
check "... a resumed run skips one more" "$program" --out "$dir/skip" --resume must --steps 4
check "... and counts it" same "$(counter "$dir/skip/step_00000004")" "4 1 3 8 128 "
"$program" --out "$dir/skip" --resume must --steps 9 >"$dir/skip.out" 2>"$dir/skip.err"
check "... after skip:4 in a row, over two resumes, it ends" test $? -eq 4
check "... having skipped one more" same "$(grep -c 'skipped' "$dir/skip.err")" 1
check "... at step 5" grep -q 'step 5: .*nothing was updated' "$dir/skip.err"
finish cli_settings
