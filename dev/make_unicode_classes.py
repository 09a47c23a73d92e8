#!/usr/bin/env python3
"""Makes llmc/text/unicode_classes.c: which characters GPT-2's splitting takes for letters, numbers and spaces.

    python3 dev/make_unicode_classes.py UnicodeData.txt [PropList.txt]     from unicode.org/Public/16.0.0/ucd
    python3 dev/make_unicode_classes.py test/fixtures/gpt2/classes.txt     from the list that the tests use

Letters are the general categories L*, numbers N*, spaces the property White_Space (without PropList.txt its 25
characters, which have not changed since Unicode 6.3, are known here). The list of the tests was found by trying every code
point with two tokenizers (tiktoken 0.14.0 and Hugging Face tokenizers 0.23.3), which agree; both inputs give the
same table, and test_split compares it with the list character by character.
"""
import sys

SPACES = [*range(0x9, 0xE), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000]
OTHER, LETTER, NUMBER, SPACE = range(4)


def from_list(lines):
    classes = {}
    for line in lines:
        if line.startswith("#"):
            continue
        kind, span = line.split()
        first, _, last = span.partition("-")
        for c in range(int(first, 16), int(last or first, 16) + 1):
            classes[c] = {"L": LETTER, "N": NUMBER, "S": SPACE}[kind]
    return classes


def from_unicode_data(lines, spaces):
    classes, first = {}, None
    for line in lines:
        code, name, category = line.split(";")[:3]
        code = int(code, 16)
        if name.endswith("First>"):
            first = code
            continue
        kind = {"L": LETTER, "N": NUMBER}.get(category[0])
        for c in range(code if first is None else first, code + 1):
            if kind:
                classes[c] = kind
        first = None
    classes.update((c, SPACE) for c in spaces)
    return classes


def spaces_of(path):
    spaces = []
    for line in open(path, encoding="utf-8"):
        span, _, name = line.partition("#")[0].partition(";")
        if name.strip() == "White_Space":
            first, _, last = span.strip().partition("..")
            spaces += range(int(first, 16), int(last or first, 16) + 1)
    return spaces


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    lines = open(sys.argv[1], encoding="utf-8").read().splitlines()
    if lines[0].startswith("#"):
        classes = from_list(lines)
    else:
        classes = from_unicode_data(lines, spaces_of(sys.argv[2]) if len(sys.argv) == 3 else SPACES)
    changes, last = [], OTHER
    for c in range(0x110000):
        if classes.get(c, OTHER) != last:
            last = classes.get(c, OTHER)
            changes.append(f"0x{c << 2 | last:x},")
    rows, row = [], "   "
    for change in changes:
        if len(row) + 1 + len(change) > 116:
            rows.append(row)
            row = "   "
        row += " " + change
    rows.append(row)
    with open("llmc/text/unicode_classes.c", "w") as out:
        out.write("/* unicode_classes.c: made by dev/make_unicode_classes.py from Unicode 16.0; see unicode_classes.h. */\n")
        out.write('#include "unicode_classes.h"\n\n// clang-format off\n')
        out.write("const uint32_t unicode_class_changes[] = {\n" + "\n".join(rows) + "\n};\n// clang-format on\n")
        out.write(f"const int unicode_class_change_count = {len(changes)};\n")


main()
