#!/bin/sh
# cli_identity.sh: is it the same data? Every token counts: when a run is resumed, when ranks start, and when ids
# are compared with the vocabulary. Needs Open MPI for the rows on ranks.
. test/cli.sh
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 # containers run as root
head -c 4000 README.md >"$dir/text"
shape="--layers 1 --heads 2 --channels 16 --seq-len 16 --log-every 0 --threads 1 --batch 2 --total-batch 64"
base="$shape --val-every 0 --sample-every 0"

# change FILE: one byte in the middle of its second half; size, edges and time stay.
change() {
    cp -p "$1" "$dir/before"
    printf '~' | dd of="$1" bs=1 seek=$(($(wc -c <"$1") * 3 / 4)) conv=notrunc 2>/dev/null
    touch -r "$dir/before" "$1"
}

check "a run" "$program" $base --data "$dir/text" --steps 4 --out "$dir/run"
check "... is resumed on the same data" "$program" --steps 5 --decay-steps 4 --resume must --out "$dir/run"
cp "$dir/text" "$dir/same"
check "... under another name as well" "$program" --steps 6 --decay-steps 4 --resume must --out "$dir/run" --data "$dir/same"
change "$dir/text"
refuses 2 "--data (as it is now) makes another run" "... but not where one byte in the middle differs" \
    "$program" --steps 7 --decay-steps 4 --resume must --out "$dir/run" --data "$dir/text"

identity() { "$program" verify "$1" | sed -n 's/.*identity \([0-9a-f]\{16\}\)$/\1/p'; }
check "verify says an identity" test -n "$(identity "$dir/text")"
check "... the same for the same bytes" test "$(identity "$dir/same")" = "$(identity "$dir/before")"
check "... and another for others" test "$(identity "$dir/same")" != "$(identity "$dir/text")"

# ---- ids beyond the vocabulary: 5,000 raw tokens, of which token 4,000 is 60,000
head -c 10000 /dev/zero | tr '\0' '\300' >"$dir/tokens.bin"
printf '\140\352' | dd of="$dir/tokens.bin" bs=1 seek=8000 conv=notrunc 2>/dev/null
says="token 4000 is 60000, but ids 0 to 50256 are expected"
refuses 3 "$says" "an id beyond the vocabulary ends training before it begins" \
    "$program" $base --data "$dir/tokens.bin" --steps 1 --val-fraction 0 --out "$dir/none"
check "... and nothing is made" test ! -e "$dir/none"
refuses 3 "$says" "... plan sees it" "$program" plan $base --data "$dir/tokens.bin" --val-fraction 0
refuses 3 "$says" "... and in the part for validation" "$program" plan $base --data "$dir/tokens.bin" --val-fraction 0.5
refuses 3 "$says" "... and verify --vocab" "$program" verify --vocab 50257 "$dir/tokens.bin"
check "without --vocab verify says how large ids are" sh -c "'$program' verify '$dir/tokens.bin' | grep -q 'the largest is 60000'"
check "a vocabulary that has it is fine" "$program" verify --vocab 60001 "$dir/tokens.bin"
refuses 3 "$dir/same: token 0 is 35, but ids 0 to 9 are" "text, too, has a vocabulary" "$program" verify --vocab 10 "$dir/same"

# ---- a thousand files, with far fewer descriptors
mkdir "$dir/thousand"
cat README.md README.md | head -c 20000 >"$dir/long"
"$build/make_data" raw "$dir/long" "$dir/long.bin"
split -a 4 -b 40 "$dir/long.bin" "$dir/thousand/part"
for file in "$dir/thousand"/part*; do mv "$file" "$file.bin"; done
few() { # OPTIONS...: a run that may have 64 files open at once
    (ulimit -n 64 && exec "$program" $base --vocab 256 --no-shuffle --steps 3 "$@")
}
few --data "$dir/thousand" --out "$dir/parts" >"$dir/few" 2>&1
check "1,000 files under a limit of 64 descriptors train" grep -q "trained 3 updates" "$dir/few"
check "... as their whole does" says "trained 3 updates" few --data "$dir/long.bin" --out "$dir/whole"
check "... the same tokens" same_files "$dir/parts/log.txt" "$dir/whole/log.txt"

if ! has_ranks; then
    skip "no Open MPI"
    finish cli_identity
    exit
fi
mkdir "$dir/here" "$dir/there" && cp "$dir/same" "$dir/here/data" && cp "$dir/text" "$dir/there/data"
on_two() { # OPTIONS...: ranks in two directories, as on two machines
    timeout 60 mpirun --oversubscribe -np 1 -wdir "$dir/here" "$program" $base --steps 2 --out "$dir/two" --overwrite "$@" : \
        -np 1 -wdir "$dir/there" "$program" $base --steps 2 --out "$dir/two" --overwrite "$@" >"$dir/job" 2>&1 </dev/null
}
on_two --data data
check "two ranks whose data differ in one byte are refused" test $? -eq 2
check "... with one line that says so" grep -q "rank 1: training data differs between ranks" "$dir/job"
on_two --data "$dir/same" --val data --val-every 1
check "... and data for validation" grep -q "rank 1: validation data differs between ranks" "$dir/job"
cp "$dir/here/data" "$dir/there/data"
check "... and train when they are the same" on_two --data data
mkdir "$dir/here/shards" "$dir/there/shards"
cp "$dir/thousand"/partaa*.bin "$dir/here/shards" && cp "$dir/here/shards"/*.bin "$dir/there/shards"
rm "$dir/there/shards/partaaab.bin"
on_two --data shards --vocab 256
check "a shard that one machine does not have yet is noticed" test $? -eq 2
check "... in one line" grep -q "rank 1: training data differs between ranks: here it is .* tokens" "$dir/job"
cp "$dir/here/shards/partaaab.bin" "$dir/there/shards"
check "... and the run starts when it is there" on_two --data shards --vocab 256
finish cli_identity
