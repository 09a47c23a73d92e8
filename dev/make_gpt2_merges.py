#!/usr/bin/env python3
"""Makes llmc/text/gpt2_merges.bin, the table of GPT-2's tokenizer that is built into the program.

    python3 dev/make_gpt2_merges.py merges.txt          (also under its older name vocab.bpe)

The input is the file that OpenAI published with GPT-2 (MIT licence, llmc/text/LICENSE.gpt2); Hugging Face
keeps it as merges.txt. Each of its 50,000 merges joins two tokens into the next new one. The output has for
each merge, in order, the ids of its two parts as little-endian uint16: 200,000 bytes. Ids: 0-255 are the
single bytes (first the printable ones 33-126, 161-172, 174-255, then the others), 256 + r is merge r,
50256 is the end of text.
"""
import struct
import sys


def byte_order():
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    return printable + [b for b in range(256) if b not in printable]


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    order = byte_order()
    characters, spare = {}, 256  # byte: the character that stands for it in the file
    for b in range(256):
        printable = b in order[:188]
        characters[b] = chr(b if printable else spare)
        spare += not printable
    ids = {characters[b]: i for i, b in enumerate(order)}
    with open(sys.argv[1], encoding="utf-8") as file:
        lines = file.read().split("\n")
    if lines[0].startswith("#version"):
        lines = lines[1:]
    pairs = []
    for line in lines:
        if not line:
            continue
        left, right = line.split(" ")
        pairs.append((ids[left], ids[right]))
        if left + right in ids:
            sys.exit(f"'{line}' makes a token that is already there")
        ids[left + right] = len(ids)
    if len(pairs) != 50000:
        sys.exit(f"{sys.argv[1]}: {len(pairs)} merges, but GPT-2 has 50,000")
    with open("llmc/text/gpt2_merges.bin", "wb") as out:
        out.write(b"".join(struct.pack("<HH", *pair) for pair in pairs))


main()
