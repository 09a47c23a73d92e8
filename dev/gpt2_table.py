"""GPT-2's tokenizer for other libraries, made from the table that is in the program."""
import os
import struct

TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "llmc", "text", "gpt2_merges.bin")
PATTERN = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"""  # tiktoken's own for GPT-2


def tokens():
    """The bytes of tokens 0 to 50255."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    found = [bytes([b]) for b in printable + [b for b in range(256) if b not in printable]]
    with open(TABLE, "rb") as file:
        for left, right in struct.iter_unpack("<HH", file.read()):
            found.append(found[left] + found[right])
    return found


def tiktoken_encoding():
    import tiktoken

    ranks = {token: i for i, token in enumerate(tokens())}
    return tiktoken.Encoding("gpt2", pat_str=PATTERN, mergeable_ranks=ranks, special_tokens={"<|endoftext|>": 50256})
