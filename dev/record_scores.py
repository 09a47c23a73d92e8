#!/usr/bin/env python3
"""Makes test/fixtures/hellaswag: a tiny GPT-2 with a tokenizer, examples in both formats, and their scores.

    dev/record_scores.py [DIRECTORY] [--merges MERGES]

It shares no code with the program: the model, its tokenizer and the scores are written down here a second
time, in plain Python and float64. MERGES is GPT-2's merges.txt, of which the first 63 make the vocabulary;
without it the directory's own merges.txt is used. Run again, it writes the same bytes. No package is needed.

expected.jsonl: a line for each example with the loss of each ending (the sum over its tokens, in nats), the
number of its tokens, and which ending acc and acc_norm choose; the last line has the totals.
"""
import json
import math
import os
import random
import re
import struct
import sys

LAYERS, HEADS, CHANNELS, POSITIONS, MERGES = 2, 2, 16, 96, 63
VOCAB = 256 + MERGES + 1
WORD = re.compile(r"'(?:[sdmt]|ll|ve|re)| ?[^\W\d_]+| ?\d+| ?(?:[^\s\w]|_)+|\s+(?!\S)|\s+")


# ---- tokens: byte-level BPE (Radford et al. 2019) --------------------------------------------------
def byte_characters():
    """The character that stands for each byte in vocabulary files, in the order of the ids."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [b for b in range(256) if b not in shown]
    return {**{b: chr(b) for b in shown}, **{b: chr(256 + i) for i, b in enumerate(hidden)}}


class Tokenizer:
    def __init__(self, merges):
        self.characters = byte_characters()
        self.ranks = {tuple(line.split()): i for i, line in enumerate(merges)}
        names = [*self.characters.values(), *(line.replace(" ", "") for line in merges), "<|endoftext|>"]
        self.ids = {name: i for i, name in enumerate(names)}

    def word(self, word):
        parts = [self.characters[b] for b in word.encode()]
        while True:
            pairs = [(self.ranks[p], i) for i, p in enumerate(zip(parts, parts[1:])) if p in self.ranks]
            if not pairs:
                return [self.ids[p] for p in parts]
            _, i = min(pairs)
            parts[i : i + 2] = [parts[i] + parts[i + 1]]

    def encode(self, text):
        words = WORD.findall(text)
        assert "".join(words) == text
        return [t for word in words for t in self.word(word)]


# ---- the model -------------------------------------------------------------------------------------
def shapes():
    C = CHANNELS
    table = {"wte.weight": (VOCAB, C), "wpe.weight": (POSITIONS, C)}
    for i in range(LAYERS):
        h = f"h.{i}."
        table.update({
            h + "ln_1.weight": (C,), h + "ln_1.bias": (C,),
            h + "attn.c_attn.weight": (C, 3 * C), h + "attn.c_attn.bias": (3 * C,),
            h + "attn.c_proj.weight": (C, C), h + "attn.c_proj.bias": (C,),
            h + "ln_2.weight": (C,), h + "ln_2.bias": (C,),
            h + "mlp.c_fc.weight": (C, 4 * C), h + "mlp.c_fc.bias": (4 * C,),
            h + "mlp.c_proj.weight": (4 * C, C), h + "mlp.c_proj.bias": (C,),
        })
    return {**table, "ln_f.weight": (C,), "ln_f.bias": (C,)}


def make_weights():
    """Larger than a fresh model's, so that predictions differ; rounded to float32, as the file has them."""
    rng = random.Random(27)
    weights = {}
    for name, shape in shapes().items():
        base, scale = (1.0, 0.1) if ".ln_" in "." + name and "weight" in name else (0.0, 0.3)
        values = [base + scale * rng.gauss(0, 1) for _ in range(math.prod(shape))]
        weights[name] = struct.unpack(f"<{len(values)}f", struct.pack(f"<{len(values)}f", *values))
    return weights


def dot(a, b):
    return math.fsum(map(lambda x, y: x * y, a, b))


class Model:
    def __init__(self, weights):
        self.w = {}
        for name, shape in shapes().items():
            flat = weights[name]
            if len(shape) == 2:
                rows, columns = shape
                matrix = [flat[r * columns : (r + 1) * columns] for r in range(rows)]
                # the matrices of a block are stored (in, out)
                self.w[name] = matrix if name.startswith("w") else list(zip(*matrix))
            else:
                self.w[name] = flat

    def linear(self, x, name):
        return [dot(x, row) + b for row, b in zip(self.w[name + ".weight"], self.w[name + ".bias"])]

    def norm(self, x, name):
        mean = math.fsum(x) / len(x)
        rstd = 1 / math.sqrt(math.fsum((v - mean) ** 2 for v in x) / len(x) + 1e-5)
        return [(v - mean) * rstd * g + b for v, g, b in zip(x, self.w[name + ".weight"], self.w[name + ".bias"])]

    def attention(self, rows):
        """Causal attention over rows of queries, keys and values."""
        C, size = CHANNELS, CHANNELS // HEADS
        out = []
        for t, row in enumerate(rows):
            mixed = []
            for h in range(0, C, size):
                scores = [dot(row[h : h + size], past[C + h : C + h + size]) / math.sqrt(size) for past in rows[: t + 1]]
                top = max(scores)
                shares = [math.exp(s - top) for s in scores]
                total = math.fsum(shares)
                for i in range(2 * C + h, 2 * C + h + size):
                    mixed.append(math.fsum(p * past[i] for p, past in zip(shares, rows)) / total)
            out.append(mixed)
        return out

    def losses(self, ids, first):
        """The losses of tokens ids[first:], each after all those before it."""
        x = [[a + b for a, b in zip(self.w["wte.weight"][t], self.w["wpe.weight"][i])] for i, t in enumerate(ids[:-1])]
        for i in range(LAYERS):
            h = f"h.{i}."
            mixed = self.attention([self.linear(self.norm(v, h + "ln_1"), h + "attn.c_attn") for v in x])
            x = [[a + b for a, b in zip(v, self.linear(m, h + "attn.c_proj"))] for v, m in zip(x, mixed)]
            for t, v in enumerate(x):
                wide = self.linear(self.norm(v, h + "ln_2"), h + "mlp.c_fc")
                wide = [0.5 * a * (1 + math.tanh(math.sqrt(2 / math.pi) * (a + 0.044715 * a**3))) for a in wide]
                x[t] = [a + b for a, b in zip(v, self.linear(wide, h + "mlp.c_proj"))]
        out = []
        for t in range(first - 1, len(ids) - 1):
            last = self.norm(x[t], "ln_f")
            logits = [dot(last, row) for row in self.w["wte.weight"]]
            top = max(logits)
            out.append(top + math.log(math.fsum(math.exp(v - top) for v in logits)) - logits[ids[t + 1]])
        return out


# ---- examples --------------------------------------------------------------------------------------
WHO = ["The old man", "A girl in a red coat", "Two cooks", "The café's owner", "He", "A team of 7 players"]
WHAT = ["walks to the river.", "opens the window, and then", "is holding a rope. It's", "stands on a ladder\n and",
        "cuts an onion;", "shows how the pump works: first,"]
THEN = ["jumps.", "the water is cold", "looks at the camera and smiles, as if nothing had happened at all.", "he sings",
        "ties it to the boat with 3 knots", "falls asleep", "don't stop until the music is over",
        "throws the ball - and misses", "eats the rest of it; then leaves the kitchen", "über alles", "…",
        "a dog barks 100 times"]


def make_examples(count):
    rng = random.Random(10042)
    for i in range(count):
        yield {"ind": 3 * i + 1, "activity_label": "Made up", "ctx": f"{rng.choice(WHO)} {rng.choice(WHAT)}",
               "split": "val", "split_type": "indomain", "label": rng.randrange(4), "endings": rng.sample(THEN, 4)}


def least(values):
    """The index of the smallest; no two may be so near that rounding could decide."""
    order = sorted(values)
    assert order[1] - order[0] > 1e-3
    return values.index(order[0])


# ---- files -----------------------------------------------------------------------------------------
def write(directory, name, data):
    path = os.path.join(directory, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data if isinstance(data, bytes) else data.encode())


def write_model(directory, weights, tokenizer, merges):
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, shape in shapes().items():
        size = 4 * math.prod(shape)
        header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    body = b"".join(struct.pack(f"<{len(weights[n])}f", *weights[n]) for n in shapes())
    write(directory, "model/model.safetensors", struct.pack("<Q", len(text)) + text + body)
    config = {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "activation_function": "gelu_new",
              "layer_norm_epsilon": 1e-05, "n_layer": LAYERS, "n_head": HEADS, "n_embd": CHANNELS,
              "n_positions": POSITIONS, "vocab_size": VOCAB, "bos_token_id": VOCAB - 1, "eos_token_id": VOCAB - 1}
    write(directory, "model/config.json", json.dumps(config, indent=2) + "\n")
    write(directory, "model/vocab.json", json.dumps(tokenizer.ids) + "\n")
    write(directory, "model/merges.txt", "\n".join(["#version: 0.2", *merges]) + "\n")


def llmc_example(index, label, context, endings):
    """An example as llm.c's eval files have it."""
    words = [index, label, len(endings), len(context), *context]
    for ending in endings:
        words += [len(ending), *ending]
    return struct.pack(f"<{2 + len(words)}H", 65535, 2 * (2 + len(words)), *words)


def main():
    words = sys.argv[1:]
    merges_path = words.pop(words.index("--merges") + 1) if "--merges" in words else None
    words = [w for w in words if w != "--merges"]
    here = os.path.dirname(os.path.abspath(__file__))
    directory = words[0] if words else os.path.join(here, "..", "test", "fixtures", "hellaswag")
    with open(merges_path or os.path.join(directory, "model", "merges.txt"), encoding="utf-8") as file:
        merges = file.read().splitlines()[1 : MERGES + 1]
    tokenizer, weights = Tokenizer(merges), make_weights()
    write_model(directory, weights, tokenizer, merges)
    model, lines, binary, expected = Model(weights), [], [], []
    right = right_norm = 0
    for index, example in enumerate(make_examples(30)):
        context = tokenizer.encode(example["ctx"])
        endings = [tokenizer.encode(" " + ending) for ending in example["endings"]]
        lines.append(json.dumps(example, ensure_ascii=index % 2 == 0) + "\n")
        binary.append(llmc_example(index, example["label"], context, endings))
        sums = [math.fsum(model.losses(context + ending, len(context))) for ending in endings]
        acc, acc_norm = least(sums), least([s / len(e) for s, e in zip(sums, endings)])
        right += acc == example["label"]
        right_norm += acc_norm == example["label"]
        expected.append({"losses": sums, "tokens": [len(e) for e in endings], "acc": acc, "acc_norm": acc_norm})
    expected.append({"examples": len(lines), "acc": right, "acc_norm": right_norm})
    header = struct.pack("<256i", 20240522, 1, len(lines), max(map(len, binary)), *[0] * 252)
    write(directory, "examples.jsonl", "".join(lines))
    write(directory, "examples.bin", header + b"".join(binary))
    write(directory, "expected.jsonl", "".join(json.dumps(e) + "\n" for e in expected))
    print(json.dumps(expected[-1]))


main()
