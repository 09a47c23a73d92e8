#!/usr/bin/env python3
"""Shows that Hugging Face's transformers opens a checkpoint, and computes what the program computes.

    dev/check_transformers.py CHECKPOINT [PROGRAM]

Loads the directory with GPT2LMHeadModel.from_pretrained, feeds it rows of token ids of several lengths, and
compares logits and loss with those of `PROGRAM eval --ids ... --logits` (default ./train_gpt2). Where the
checkpoint has a tokenizer, AutoTokenizer must load it, and encode as the program does. Prints the largest
differences; exits with 1 when one is above 1e-5. Needs torch and transformers.
"""
import os
import random
import subprocess
import sys

os.environ.setdefault("HF_HUB_OFFLINE", "1")
import torch  # noqa: E402
from transformers import AutoTokenizer, GPT2LMHeadModel  # noqa: E402

TOLERANCE = 1e-5


def program_says(program, checkpoint, ids):
    """Mean loss of ids 1.. (None for one id), and the logits after the last."""
    command = [program, "eval", "--model", checkpoint, "--ids", " ".join(map(str, ids)), "--logits"]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    loss = float(lines[0].split()[1]) if len(ids) > 1 else None
    return loss, torch.tensor([float(x) for x in lines[-1].split()[1:]])


def check_model(checkpoint, program):
    model, loaded = GPT2LMHeadModel.from_pretrained(checkpoint, output_loading_info=True)
    problems = {kind: names for kind, names in loaded.items() if names}
    if problems:
        sys.exit(f"from_pretrained complains: {problems}")
    model.eval()
    config, worst_logit, worst_loss = model.config, 0.0, 0.0
    random.seed(1)
    for n in sorted({1, 2, config.n_positions // 2, config.n_positions}):
        ids = [random.randrange(config.vocab_size) for _ in range(n)]
        loss, logits = program_says(program, checkpoint, ids)
        with torch.no_grad():
            x = torch.tensor([ids])
            out = model(x, labels=x)
        worst_logit = max(worst_logit, (out.logits[0, -1] - logits).abs().max().item())
        if loss is not None:
            worst_loss = max(worst_loss, abs(out.loss.item() - loss))
    print(f"logits differ by at most {worst_logit:.2e}, losses by {worst_loss:.2e}")
    return max(worst_logit, worst_loss) <= TOLERANCE


def program_tokens(program, checkpoint, text):
    command = [program, "tokenize", "-", "--ids", "--tokenizer", checkpoint]
    said = subprocess.run(command, check=True, capture_output=True, input=text.encode()).stdout
    return [int(x) for x in said.split()]


def check_tokenizer(checkpoint, program):
    if not any(os.path.exists(os.path.join(checkpoint, name)) for name in ("tokenizer.json", "vocab.json")):
        return True
    tokenizer = AutoTokenizer.from_pretrained(checkpoint)
    texts = ["Hello, world!\r\n\ttab", "déjà vu € 😀 \x7f", " two  spaces ", "we'll 12345", open(__file__).read()]
    good = True
    for text in texts:
        ids = tokenizer.encode(text)
        good &= ids == program_tokens(program, checkpoint, text) and tokenizer.decode(ids) == text
    print(f"the tokenizer ({type(tokenizer).__name__}) {'encodes as the program does' if good else 'encodes OTHERWISE'}")
    return good


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    checkpoint, program = sys.argv[1], (sys.argv + ["./train_gpt2"])[2]
    good = [check_model(checkpoint, program), check_tokenizer(checkpoint, program)]
    sys.exit(0 if all(good) else 1)


main()
