#!/bin/sh
# bench_text.sh: text to tokens in MB a second, beside tiktoken on the same text where it is installed (pip install tiktoken;
# PYTHON=... names the Python that has it). PROSE=book.txt takes a text of yours instead of the README.
set -e
build=${BUILD:-build}
files=$build/bench_texts
mkdir -p "$files"

# repeat TEXT FILE: forty million bytes of a text, several batches of encode_documents.c.
repeat() {
    while cat "$1"; do :; done 2>/dev/null | head -c 40000000 >"$2"
}
repeat "${PROSE:-README.md}" "$files/prose"
cat llmc/*/*.[ch] train_gpt2.c test/*.c >"$files/all"
repeat "$files/all" "$files/source"
tr '\n' ' ' <"$files/prose" >"$files/one_line"
head -c 10000000 /dev/zero | tr '\0' a >"$files/letters_a"
head -c 10000000 /dev/zero | tr '\0' ' ' >"$files/spaces"
rm "$files/all"
set -- "$files/prose" "$files/source" "$files/one_line" "$files/letters_a" "$files/spaces"

"$build/bench_text" "$@" >"$files/ours"
"${PYTHON:-python3}" dev/bench_tiktoken.py "$files/prose" "$files/source" >"$files/theirs" 2>/dev/null || : >"$files/theirs"
echo "text to GPT-2's tokens, 40 MB of text each, and 10 MB of one letter and of blanks"
awk 'NR == FNR { theirs[$1] = $2; next }
     { printf "%-10s %6.1f MB/s on one thread, two are %.2f times as fast, %.2f bytes a token", $1, $2, $3, $4
       if (theirs[$1]) printf "; tiktoken %.1f MB/s: %.1f times", theirs[$1], $2 / theirs[$1]
       printf "\n" }' "$files/theirs" "$files/ours"
[ -s "$files/theirs" ] || echo "(tiktoken is not installed: no comparison)"
rm -r "$files"
