#!/bin/sh
# cli_files.sh: what the program does to files, and believes of them. What cannot be examined is not taken for
# missing; what is not the program's is neither removed, followed nor cut; closed standard streams and limits on
# files cost no data; a damaged checkpoint, or weights that are not finite, are refused by every command; the end
# of a run gets into its logs.
. test/cli.sh
export OMP_WAIT_POLICY=passive # more threads than cores
head -c 4000 README.md >"$dir/text"
base="--layers 1 --heads 2 --channels 16 --seq-len 16 --data $dir/text --log-every 0 --threads 1 --batch 2"
base="$base --total-batch 64 --val-every 0 --sample-every 0"
run=$dir/run last=$dir/run/step_00000020
# shellcheck disable=SC2086 # a list
start() { # NAME OPTIONS...
    name=$1
    shift
    "$program" $base --steps 20 --save-every 10 --out "$dir/$name" "$@"
}
# A name for all that is in a directory: names, sizes, contents, but for the lock.
contents() { (cd "$1" && find . -type f ! -name '.*' -exec cksum {} + | sort); }
flip() { # FILE: one bit in its middle
    middle=$(($(wc -c <"$1") / 2))
    byte=$(od -An -tu1 -j $middle -N 1 "$1")
    printf "\\$(printf %o $((byte ^ 16)))" | dd of="$1" bs=1 seek=$middle conv=notrunc 2>/dev/null
}
check "a run of 20 steps" says "trained 20 updates" start run
[ -d "$last" ] || { finish cli_files; exit; } # all else is done with it

# ---- what cannot be examined is not missing
# as_user COMMAND...: as a user to whom permissions apply.
as_user() {
    if [ "$(id -u)" -eq 0 ]; then setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; else "$@"; fi
}
chmod 755 "$dir"
chmod 644 "$dir/text"
if as_user test -x "$program"; then
    cp -r "$run" "$dir/hidden"
    contents "$dir/hidden" >"$dir/before"
    [ "$(id -u)" -ne 0 ] || chown -R 65534:65534 "$dir/hidden"
    chmod 333 "$dir/hidden"
    for resume in auto must; do
        refuses 1 "cannot be listed: Permission denied" "--resume $resume of a run that may not be listed" \
            as_user "$program" $base --steps 30 --out "$dir/hidden" --resume $resume
    done
    refuses 1 "cannot be listed: Permission denied" "... nor is it overwritten" \
        as_user "$program" $base --steps 30 --out "$dir/hidden" --overwrite
    chmod 755 "$dir/hidden"
    chmod 000 "$dir/hidden/step_00000020/optimizer.safetensors"
    refuses 1 "optimizer.safetensors: cannot be read: Permission denied" "a checkpoint that may not be read is not damaged" \
        as_user "$program" $base --steps 30 --out "$dir/hidden" --resume auto
    chmod 644 "$dir/hidden/step_00000020/optimizer.safetensors"
    contents "$dir/hidden" >"$dir/after"
    check "... after all of which the run is as it was" same_files "$dir/before" "$dir/after"
    mkdir "$dir/locked"
    chmod 555 "$dir/locked"
    refuses 1 "cannot be locked: Permission denied" "a directory that may not be written to" \
        as_user "$program" $base --steps 30 --out "$dir/locked" --resume auto
else
    skip "permissions: another user cannot start the program here"
fi
ln -s nowhere "$dir/shard.bin"
mkdir "$dir/shards"
cp "$dir/text" "$dir/shards/a.txt"
ln -s nowhere "$dir/shards/b.txt"
refuses 3 "b.txt: " "a link that leads nowhere is still one of the data files" "$program" plan --data "$dir/shards"

# ---- files of others
mkdir "$dir/m.tmp" "$dir/m.train_gpt2-0123456789abcdef.tmp"
echo mine >"$dir/m.tmp/notes"
echo mine >"$dir/m.train_gpt2-0123456789abcdef.tmp/content"
check "convert" "$program" convert "$last" "$dir/m"
check "... touches no directory of a user's, whatever it is called" same mine "$(cat "$dir/m.tmp/notes")"
check "... nor one that looks like its own but has no mark" same mine "$(cat "$dir/m.train_gpt2-0123456789abcdef.tmp/content")"
refuses 2 "exists already" "convert to a link that leads nowhere" "$program" convert "$last" "$dir/shard.bin"
# many_converts: at once, to one name: one succeeds, the file is whole, nothing is left.
many_converts() {
    pids='' good=0
    for i in 1 2 3 4 5 6; do
        "$program" convert "$last" "$dir/same.bin" >"$dir/convert.$i" 2>&1 &
        pids="$pids $!"
    done
    for pid in $pids; do wait "$pid" && good=$((good + 1)); done
    cat "$dir"/convert.?
    [ $good -eq 1 ] && "$program" convert "$last" "$dir/alone.bin" && cmp "$dir/same.bin" "$dir/alone.bin" &&
        [ -z "$(find "$dir" -name 'same.bin.*')" ]
}
check "of six at once to one name one writes it, whole" many_converts
"$program" convert "$last" "$dir/killed.bin" >"$dir/said" 2>&1 & # (it may be through before)
kill -9 $!
wait $! 2>/dev/null
rm -f "$dir/killed.bin"
check "what a killed convert left" "$program" convert "$last" "$dir/killed.bin"
check "... is gone" test -z "$(find "$dir" -name 'killed.bin.*')"

for link in symbolic hard; do
    cp -r "$run" "$dir/$link"
    mv "$dir/$link/metrics.jsonl" "$dir/$link.others"
    cp "$dir/$link.others" "$dir/$link.before"
    if [ $link = hard ]; then ln "$dir/$link.others" "$dir/$link/metrics.jsonl"; else ln -s "$dir/$link.others" "$dir/$link/metrics.jsonl"; fi
    refuses 1 "link" "a log that is a $link link is not resumed" "$program" --out "$dir/$link" --resume must --steps 30 --decay-steps 20
    check "... and what it leads to is as it was" same_files "$dir/$link.before" "$dir/$link.others"
done

# ---- closed descriptors, limits
closed() { # NAME: trains with all three standard streams closed
    start "$1" <&- >&- 2>&- && same_files "$run/log.txt" "$dir/$1/log.txt" &&
        [ "$(timeless "$run/metrics.jsonl")" = "$(timeless "$dir/$1/metrics.jsonl")" ]
}
check "with standard streams closed the logs have what they should" closed closed
only_out_closed() { start "$1" >&- && same_files "$run/log.txt" "$dir/$1/log.txt"; }
check "... likewise with one" only_out_closed out_closed
limited() { (ulimit -f 40 && start limited --steps 2000 --save-every 0); }
refuses 1 "File too large" "a limit on the size of files is a message, not a signal" limited

to_full_disk() { "$program" "$@" >/dev/full; }
for command in "plan" "eval --data $dir/text --model $last" "verify $last" "sample --tokens 5 --model $last"; do
    refuses 1 "standard output" "${command%% *} says when its result could not be written" to_full_disk $command
done

# ---- a damaged checkpoint, by its own path
for file in model.safetensors optimizer.safetensors config.json trainer_state.json; do
    rm -rf "$dir/damaged"
    cp -r "$last" "$dir/damaged"
    flip "$dir/damaged/$file"
    for command in "eval --data $dir/text --model" "sample --tokens 5 --model" "convert" "verify" \
        "train $base --steps 3 --out $dir/tuned --model"; do
        into=
        [ "$command" != convert ] || into=$dir/never
        refuses 3 "$file" "${command%% *} of a checkpoint with a flipped bit in $file" "$program" $command "$dir/damaged" $into
    done
done
check "... of which convert wrote nothing" test ! -e "$dir/never"
rm -rf "$dir/damaged"
cp -r "$last" "$dir/damaged"
rm "$dir/damaged/trainer_state.json"
refuses 3 "trainer_state.json: No such file" "verify of a checkpoint without its state" "$program" verify "$dir/damaged"
refuses 3 "trainer_state.json: No such file" "... eval of one" "$program" eval --data "$dir/text" --model "$dir/damaged"
check "training starts from a whole one" says "trained 20" start tuned --model "$last"
check "... or from the newest of a run" says "trained 20" start tuned_again --model "$run"
check "... alike" same_files "$dir/tuned/log.txt" "$dir/tuned_again/log.txt"

# ---- numbers that are not finite
cp -r "$last" "$dir/nan"
rm "$dir/nan/trainer_state.json" "$dir/nan/optimizer.safetensors" # what is left is a plain directory of weights
header=$(od -An -tu4 -N 4 "$dir/nan/model.safetensors" | tr -d ' ')
printf '\000\000\300\177' | dd of="$dir/nan/model.safetensors" bs=1 seek=$((8 + header + 4 * 37)) conv=notrunc 2>/dev/null
for command in "eval --data $dir/text --model" "sample --tokens 5 --model" "convert" "verify" \
    "train $base --steps 3 --out $dir/from_nan --model"; do
    into=
    [ "$command" != convert ] || into=$dir/never
    refuses 3 "wte.weight[2, 5] is nan" "${command%% *} of weights with a NaN" "$program" $command "$dir/nan" $into
done
check "... which leaves neither output" test ! -e "$dir/never" -a ! -e "$dir/from_nan/log.txt"
check "... nor anything unfinished" test -z "$(find "$dir" -maxdepth 1 -name 'never*')"
refuses 4 "is inf: nothing is saved" "weights that overflow after the last update are not saved" start overflow --lr 1e38 --min-lr 1e38 --warmup 1 --steps 2 --save-every 1
check "... so that no checkpoint has them" test ! -e "$dir/overflow/step_00000001"

tr -d ' \n' <"$dir/text" >"$dir/one_word" # a word of thousands of bytes: its perplexity is beyond a double
check "a perplexity that no double holds" says "perplexity above 1.79769313e+308 per word" "$program" eval --model "$last" --data "$dir/one_word"

# ---- files out of proportion
mkdir "$dir/large"
cp "$last/model.safetensors" "$dir/large/"
{ printf '{"x":[0' && head -c 3000000 /dev/zero | sed 's/\x00/,0/g' && printf ']}'; } >"$dir/large/config.json"
refuses 3 "expected at most 1048576" "a config.json of 6 MB" "$program" verify "$dir/large"

# ---- ends
# ends_alike NAME: started again, the finished run NAME has the logs of the undisturbed one.
ends_alike() {
    start "$1" --resume auto && same_files "$run/log.txt" "$dir/$1/log.txt" &&
        [ "$(sed -n '/"event":"\(end\|checkpoint\)"/p' "$run/metrics.jsonl")" = \
            "$(sed -n '/"event":"\(end\|checkpoint\)"/p' "$dir/$1/metrics.jsonl")" ] &&
        [ "$(timeless "$run/metrics.jsonl")" = "$(timeless "$dir/$1/metrics.jsonl")" ]
}
for cut in 1 2; do # the end, or the last checkpoint's record as well
    cp -r "$run" "$dir/cut$cut"
    head -n -$cut "$run/metrics.jsonl" >"$dir/cut$cut/metrics.jsonl"
    check "a finished run whose log lacks its last lines ($cut) gets them when it is started again" ends_alike "cut$cut"
done
cp -r "$run" "$dir/cut3"
head -c -10 "$run/metrics.jsonl" >"$dir/cut3/metrics.jsonl"
check "... and one whose last line was torn" ends_alike cut3
contents "$run" >"$dir/before"
check "a complete one" start run --resume auto
contents "$run" >"$dir/after"
check "... stays as it is" same_files "$dir/before" "$dir/after"

# ---- a run that cannot start leaves the one that it would replace
refuses 3 "is nan" "--overwrite by a run that cannot start" start run --overwrite --model "$dir/nan"
contents "$run" >"$dir/after"
check "... removes nothing" same_files "$dir/before" "$dir/after"
finish cli_files
