#!/bin/sh
# cli_tokenize.sh: text becomes token shards and text again; the shards are the same for any number of threads and however
# often the work was killed; and inputs, disks and pipes that fail are said in one line.
. test/cli.sh

tokenize() { "$program" tokenize "$@"; }
book=$dir/book.txt
cat README.md llmc/*/*.c >"$book" || exit 1 # a megabyte of text
printf 'first one\r\n\357\273\277caf\303\251 \000 <|endoftext|>\n\377 end' >"$dir/odd.txt"

# The sums of all shards in a directory.
shards() { (cd "$1" && cat tokens_*.bin | cksum && ls tokens_*.bin | cksum); }
in_order() { (cd "$1" && cksum tokens_*.bin); }
# Entry N of a shard's header, and its tokens.
header() { od -A n -t d4 -j $((4 * $2)) -N 4 "$1" | tr -d ' '; }
tokens() { od -v -A n -t u2 -j 1024 "$1" | tr -s ' \n' ' ' | sed 's/^ //; s/ $//'; }

# ---- ids

says_ids() { same "$(printf "$1" | "$program" tokenize - --ids ${3:-})" "$2"; }
check "ids of a line from standard input are GPT-2's" says_ids 'Hello, I am a language model,' "15496 11 314 716 257 3303 2746 11"
check "the end of text written out is text" says_ids 'a<|endoftext|>' "64 27 91 437 1659 5239 91 29"
check "... and with --special a token" says_ids 'a<|endoftext|>' "64 50256" --special
check "bytes are their values" says_ids 'a\n\377' "97 10 255" "--tokenizer bytes"
check "BOM, CRLF and NUL are encoded as they are" says_ids '\357\273\277a\r\n\000' "171 119 123 64 201 198 188"

printf '{"text": "one"}\n\n{"n": [1, {"text": "no"}], "text": "t\\u0077o \\ud83d\\ude00\\n", "x": null}\r\n{"text":""}\n' >"$dir/lines.jsonl"
check "JSON lines: a document a line, blank lines passed over" output "$dir/ids" tokenize "$dir/lines.jsonl" --ids
check "... with escapes resolved, and an empty line for an empty document" same "$(cat "$dir/ids"; echo .)" "505
11545 30325 222 198

."
printf '{"body": "one", "text": 5}' >"$dir/one"
check "--field names the member, and makes any file JSON lines" same "$(tokenize "$dir/one" --ids --field body)" 505

# ---- shards

check "a text becomes shards" output "$dir/said1" tokenize "$book" --out "$dir/whole" --shard-tokens 50000 --threads 1
check "... the first for validation" same "$(cd "$dir/whole" && echo tokens_val*)" tokens_val_000000.bin
check "... of llm.c's magic" same "$(header "$dir/whole/tokens_val_000000.bin" 0)" 20240520
check "... version" same "$(header "$dir/whole/tokens_val_000000.bin" 1)" 1
check "... and count" same "$(header "$dir/whole/tokens_val_000000.bin" 2)" 50000
check "... of two bytes a token" same "$(wc -c <"$dir/whole/tokens_train_000001.bin")" 101024
check "... that begin with the end of text" same "$(od -A n -t u2 -j 1024 -N 2 "$dir/whole/tokens_val_000000.bin" | tr -d ' ')" 50256
check "shards become the text again, byte for byte" output "$dir/back" tokenize --decode "$dir/whole"
check "... from a directory, in order" same_files "$dir/back" "$book"
for threads in 2 3 7; do
    check "$threads threads write shards" output "$dir/said1" tokenize "$book" --out "$dir/t$threads" --shard-tokens 50000 --threads $threads
    check "... the same ones" same "$(in_order "$dir/t$threads")" "$(in_order "$dir/whole")"
done
check "standard input gives shards" output "$dir/said1" sh -c 'cat "$1" | "$2" tokenize - --out "$3" --shard-tokens 50000' - "$book" "$program" "$dir/piped"
check "... the same ones" same "$(in_order "$dir/piped")" "$(in_order "$dir/whole")"
check "what was written is data" says "50000 tokens in 1 file" "$program" verify "$dir/whole/tokens_train_000001.bin"

check "bytes are tokens too" output "$dir/said1" tokenize "$dir/odd.txt" --out "$dir/byte_shards" --tokenizer bytes
check "... without an end of text" same "$(header "$dir/byte_shards/tokens_train_000001.bin" 2)" "$(($(wc -c <"$dir/odd.txt") * 9 / 10 + 1))"
check "... and decoding knows whose they are" output "$dir/back" tokenize --decode "$dir/byte_shards"
check "... all of them" same_files "$dir/back" "$dir/odd.txt"
check "... of a single shard, too" prints . tokenize --decode "$dir/byte_shards/tokens_val_000000.bin"
check "odd bytes become shards" output "$dir/said1" tokenize "$dir/odd.txt" --out "$dir/odd" --val-tokens 5
check "... and come back" output "$dir/back" tokenize --decode "$dir/odd/tokens_val_000000.bin" "$dir/odd/tokens_train_000001.bin"
check "... all of them" same_files "$dir/back" "$dir/odd.txt"
check "... the first 5 for validation" same "$(header "$dir/odd/tokens_val_000000.bin" 2)" 5
check "... which byte is not UTF-8 is counted" sh -c '"$1" tokenize "$2" --out "$3" --overwrite 2>&1 | grep "1 bytes of the text are not UTF-8"' - "$program" "$dir/odd.txt" "$dir/odd"

mkdir "$dir/texts" && printf one >"$dir/texts/a.txt" && : >"$dir/texts/b.txt" && printf 'two' >"$dir/texts/c.txt" && printf x >"$dir/texts/c.md"
check "a directory's texts become documents, an empty one the end of text alone" output "$dir/said1" tokenize "$dir/texts" --out "$dir/docs" --val-tokens 0
check "... in name order" same "$(tokens "$dir/docs/tokens_train_000000.bin")" "50256 505 50256 50256 11545"
check "a quoted glob does so too" output "$dir/said1" tokenize "$dir/texts/*.txt" --out "$dir/globbed" --val-tokens 0
check "... the same" same_files "$dir/docs/tokens_train_000000.bin" "$dir/globbed/tokens_train_000000.bin"
check "a small text is a tenth validation" output "$dir/said1" tokenize "$book" --out "$dir/small_text"
check "... and the rest training" same "$(ls "$dir/small_text" | grep -c 'tokens_')" 2
check "text, shards, and a model trained on them" says "trained 3 updates" "$program" --data "$dir/small_text" --layers 1 --heads 1 \
    --channels 8 --seq-len 16 --batch 2 --total-batch 64 --steps 3 --val-tokens 64 --sample-every 0 --out "$dir/run"

# ---- killed and started again

many=$dir/many.txt
cat "$book" "$book" "$book" >"$many"
again="tokenize $many $book --shard-tokens 5000 --out"
check "undisturbed" output "$dir/said1" "$program" $again "$dir/undisturbed"
kills=0 rounds=0 finished=0
while [ $kills -lt 50 ] && [ $rounds -lt 500 ]; do
    rounds=$((rounds + 1))
    "$program" $again "$dir/killed" >"$dir/said1" 2>&1 &
    process=$!
    sleep 0.0$((rounds * 37 % 10))$((rounds * 7 % 10))
    if kill -9 $process 2>/dev/null; then kills=$((kills + 1)); fi
    wait $process 2>/dev/null
    case $? in
    0)
        finished=$((finished + 1))
        check "killed and started again: the shards of an undisturbed run" same "$(in_order "$dir/killed")" "$(in_order "$dir/undisturbed")"
        rm -r "$dir/killed" || break
        ;;
    137) ;;
    *) break ;;
    esac
done 2>/dev/null
check "it was killed 50 times" test $kills -eq 50
check "... and then continues to its end" output "$dir/said1" "$program" $again "$dir/killed"
check "... with the shards of an undisturbed run" same "$(in_order "$dir/killed")" "$(in_order "$dir/undisturbed")"
check "... and leaves nothing unfinished" test -z "$(find "$dir/killed" -name '*.tmp')"
check "a finished one says so" says "is finished" "$program" $again "$dir/killed"

stopped="tokenize - --shard-tokens 100000 --out $dir/pipe"
all=$dir/all.txt
cat "$many" "$many" "$many" "$many" "$many" "$many" "$many" "$many" >"$all"
mkfifo "$dir/fifo"
"$program" $stopped <"$dir/fifo" >"$dir/said1" 2>&1 &
process=$!
exec 4>"$dir/fifo" # stays open: the program waits for more
head -c 20000000 "$all" >&4
if kill -0 $process 2>/dev/null; then await "$dir/pipe/tokens_train_000005.bin"; fi
sleep 0.2
kill -9 $process 2>/dev/null
wait $process 2>/dev/null
exec 4>&-
refuses 3 "differ from those that an earlier start read" "another standard input than before" sh -c "(printf x; cat '$all') | '$program' $stopped"
check "the same standard input continues" says "continues after shard" sh -c "cat '$all' | '$program' $stopped"
check "... and gives the shards of one that nothing disturbed" output "$dir/said1" sh -c "cat '$all' | '$program' tokenize - --shard-tokens 100000 --out '$dir/pipe2'"
check "... byte for byte" same "$(in_order "$dir/pipe")" "$(in_order "$dir/pipe2")"

# ---- what is refused

refuses 2 "shard_tokens 50000, but now it is 60000" "other shards in the same directory" tokenize "$book" --out "$dir/whole" --shard-tokens 60000
refuses 2 "another input was in its place" "another text" tokenize "$many" --out "$dir/whole" --shard-tokens 50000
check "... unless --overwrite" output "$dir/said1" tokenize "$dir/odd.txt" --out "$dir/whole" --overwrite
check "... which leaves none of the old ones" same "$(ls "$dir/whole" | grep -c tokens_)" 2
refuses 2 "needs --out" "nowhere to go" tokenize "$book"
refuses 2 "needs inputs" "nothing to read" tokenize --out "$dir/none"
refuses 3 "cannot be read" "a vanished input" tokenize "$book" "$dir/gone.txt" --out "$dir/none"
refuses 3 "no text, 0 bytes" "a text of nothing" tokenize "$dir/texts/b.txt" --out "$dir/none"
refuses 3 "is gzip-compressed, but text is expected" "an archive" sh -c 'gzip -c "$1" | "$2" tokenize - --out "$3"' - "$book" "$program" "$dir/none"
refuses 3 'line 2: the object has no field "text"' "an object without a text" sh -c 'printf "{\"text\":\"a\"}\n{\"x\":1}" | "$1" tokenize - --field text --ids' - "$program"
refuses 3 "line 1: the file ends inside a string" "a line that is cut" sh -c 'printf "{\"text\":\"a" | "$1" tokenize - --field text --ids' - "$program"
refuses 3 "vanished.json: no such tokenizer" "a tokenizer that is not there" tokenize "$book" --ids --tokenizer "$dir/vanished.json"
check "... and none of them left a shard" test -z "$(find "$dir/none" -name 'tokens_*' 2>/dev/null)"
refuses 1 "cannot write to standard output: No space left on device" "a full disk behind standard output" sh -c '"$1" tokenize "$2" --ids >/dev/full' - "$program" "$book"
refuses 1 "cannot write to standard output: Broken pipe" "a closed pipe" sh -c \
    '{ "$1" tokenize "$2" --decode; echo $? >"$3"; } | head -c 10 >/dev/null; exit "$(cat "$3")"' - "$program" "$dir/t2" "$dir/code"
limited() { (ulimit -f 40 && tokenize "$book" --out "$dir/limited"); }
refuses 1 "File too large" "a limit on the size of files" limited
check "... and no shard has its name" test -z "$(find "$dir/limited" -name '*.bin')"
if mkdir "$dir/small" && mount -t tmpfs -o size=100k none "$dir/small" 2>/dev/null; then
    refuses 1 "No space left on device" "a full disk" tokenize "$book" --out "$dir/small/d" --shard-tokens 20000
    check "... with whole shards alone" sh -c 'for f in "$1"/*.bin; do [ "$(wc -c <"$f")" -eq 41024 ] || exit 1; done' - "$dir/small/d"
    check "... and nothing unfinished" test -z "$(find "$dir/small" -name '*.tmp')"
    umount "$dir/small"
else
    skip "a full disk: no small file system can be mounted here"
fi
finish cli_tokenize
