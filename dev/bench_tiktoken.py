#!/usr/bin/env python3
"""Prints tiktoken's MB a second, on one thread, for each file: bench_tiktoken.py FILE...  Needs tiktoken; the table is the
program's own (llmc/text/gpt2_merges.bin), so nothing is downloaded."""
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from gpt2_table import tiktoken_encoding  # noqa: E402

encoding = tiktoken_encoding()
for path in sys.argv[1:]:
    with open(path, encoding="utf-8", newline="") as file:
        text = file.read()
    times = []
    for _ in range(3):
        start = time.perf_counter()
        encoding.encode_ordinary(text)
        times.append(time.perf_counter() - start)
    print(os.path.basename(path), f"{os.path.getsize(path) / sorted(times)[1] / 1e6:.1f}")
