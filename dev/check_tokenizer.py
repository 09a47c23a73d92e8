#!/usr/bin/env python3
"""Compares the program's tokens with those of tiktoken and Hugging Face's transformers.

    python3 dev/check_tokenizer.py [TEXT]...          needs ./train_gpt2, and: pip install tiktoken transformers

Compared are the recorded cases, this project's README and source, each TEXT (a book), and texts of random Unicode: the ids of
`train_gpt2 tokenize --ids` with tiktoken's, and with those of AutoTokenizer.from_pretrained on a checkpoint that the program has
written, for GPT-2's vocabulary and for bytes. Nothing is downloaded. Exit code 1 where they differ.
"""
import glob
import json
import os
import random
import subprocess
import sys
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from gpt2_table import tiktoken_encoding  # noqa: E402

PROGRAM = os.path.join(HERE, "..", "train_gpt2")
failures = 0


def program_ids(texts, tokenizer="gpt2"):
    """The ids of many texts, by one start of the program."""
    lines = "".join(json.dumps({"text": text}) + "\n" for text in texts)
    found = subprocess.run(
        [PROGRAM, "tokenize", "-", "--field", "text", "--ids", "--tokenizer", tokenizer],
        input=lines.encode(),
        stdout=subprocess.PIPE,
        check=True,
    )
    return [[int(i) for i in line.split()] for line in found.stdout.decode().split("\n")[:-1]]


def report(what, texts, ours, theirs):
    global failures
    wrong = [i for i in range(len(texts)) if i >= len(ours) or ours[i] != theirs[i]]
    tokens = sum(map(len, theirs))
    print(f"{what}: {len(texts)} texts, {tokens} tokens: {'DIFFER' if wrong else 'the same'}")
    if wrong:
        failures += 1
        print(f"  first: {texts[wrong[0]][:80]!r}")


def random_texts(count):
    chosen = random.Random(1)
    planes = [(0x20, 0x7F), (0x80, 0x800), (0x800, 0xD800), (0xE000, 0x10000), (0x10000, 0x20000)]
    spaces = " \n\t\r\u00a0\u2003\u3000"
    for _ in range(count):
        letters = [chosen.choice(spaces) if chosen.random() < 0.2 else chr(chosen.randrange(*chosen.choice(planes)))
                   for _ in range(chosen.randrange(60))]
        yield "".join(letters)


def main():
    from transformers import AutoTokenizer

    root = os.path.join(HERE, "..")
    with open(os.path.join(root, "test/fixtures/gpt2/cases.jsonl"), encoding="utf-8") as file:
        cases = [json.loads(line)["text"] for line in file]
    source = sorted(glob.glob(os.path.join(root, "llmc/*/*.[ch]"))) + [os.path.join(root, "README.md")]
    groups = {"recorded cases": cases, "random Unicode": list(random_texts(20000))}
    for name, paths in (("README and source", source), *((path, [path]) for path in sys.argv[1:])):
        groups[name] = [open(path, encoding="utf-8", newline="").read() for path in paths]

    tiktoken = tiktoken_encoding()
    with tempfile.TemporaryDirectory() as directory:
        loaded = {}
        for kind, vocab in (("gpt2", "50257"), ("bytes", "256")):
            out = os.path.join(directory, kind)
            subprocess.run(
                [PROGRAM, "--tokenizer", kind, "--vocab", vocab, "--layers", "1", "--heads", "1", "--channels", "8",
                 "--seq-len", "16", "--batch", "1", "--total-batch", "16", "--steps", "1", "--val-every", "0",
                 "--val-fraction", "0", "--sample-every", "0", "--out", out],
                stdout=subprocess.DEVNULL,
                check=True,
            )
            loaded[kind] = AutoTokenizer.from_pretrained(glob.glob(os.path.join(out, "step_*"))[0])
        for name, texts in groups.items():
            ours = program_ids(texts)
            report(f"{name}, tiktoken", texts, ours, [tiktoken.encode_ordinary(text) for text in texts])
            theirs = [loaded["gpt2"].encode(text, split_special_tokens=True) for text in texts]
            report(f"{name}, a checkpoint's AutoTokenizer", texts, ours, theirs)
            ours = program_ids(texts[:500], "bytes")
            report(f"{name}, bytes", texts[:500], ours, [loaded["bytes"].encode(text) for text in texts[:500]])
    sys.exit(failures > 0)


main()
