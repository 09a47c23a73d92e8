#!/usr/bin/env python3
"""Prints the documents of Parquet tables as JSON lines, for the program's tokenizer.

    dev/parquet_text.py FILE_OR_DIRECTORY... [--column text] | ./train_gpt2 tokenize - --field text --out shards

Files of a directory are taken in the order of their names. One batch of rows is in memory at a time; rows
without text (null) are left out, and how many is said at the end. Needs pyarrow.
"""
import argparse
import json
import os
import sys


def parquet_files(names):
    for name in names:
        if os.path.isdir(name):
            inside = sorted(entry for entry in os.listdir(name) if entry.endswith(".parquet"))
            if not inside:
                sys.exit(f"parquet_text.py: {name}: directory holds no .parquet file")
            yield from (os.path.join(name, entry) for entry in inside)
        else:
            yield name


def columns_of(table, path, column):
    """Refuses a table without the column, or with other things than text in it."""
    if column not in table.schema_arrow.names:
        sys.exit(f"parquet_text.py: {path}: has no column {column}; there are {', '.join(table.schema_arrow.names)}")
    kind = str(table.schema_arrow.field(column).type)
    if kind not in ("string", "large_string"):
        sys.exit(f"parquet_text.py: {path}: column {column} is {kind}, and text is expected")
    return [column]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+", metavar="FILE_OR_DIRECTORY")
    parser.add_argument("--column", default="text", help="the column that holds the text (text)")
    options = parser.parse_args()
    try:
        import pyarrow.parquet
    except ImportError:
        sys.exit("parquet_text.py: needs pyarrow (pip install pyarrow)")
    written = empty = 0
    for path in parquet_files(options.names):
        try:
            table = pyarrow.parquet.ParquetFile(path)
        except (OSError, pyarrow.ArrowInvalid) as error:
            sys.exit(f"parquet_text.py: {path}: {str(error).splitlines()[0]}")
        for batch in table.iter_batches(columns=columns_of(table, path, options.column), batch_size=4096):
            for text in batch.column(0).to_pylist():
                if text is None:
                    empty += 1
                    continue
                sys.stdout.write(json.dumps({options.column: text}, ensure_ascii=False) + "\n")
                written += 1
    sys.stdout.flush()
    print(f"{written} documents, {empty} rows without text", file=sys.stderr)


if __name__ == "__main__":
    sys.stdout.reconfigure(encoding="utf-8", newline="\n")
    try:
        main()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit("parquet_text.py: who read the lines is gone")
