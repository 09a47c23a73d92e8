#!/usr/bin/env python3
"""Records what `make test_gpt2` expects, from PyTorch in float64, into test/expectations/*.txt.

    python3 dev/record_expectations.py [DIRECTORY]      # default: test/expectations

Run this only to change the expectations (PyTorch 2.6.0); the tests read the files it wrote.
Weights, inputs and tokens come from one integer formula that test/expect.c evaluates too, exactly,
so the files hold results alone. Format and meaning of each file: test/expectations/README.md.
dev/check_expectations.sh shows that a second run writes the same bytes.
"""
import math
import os
import platform
import sys

# The plainest code paths of PyTorch and its libraries, so that other processors write the same bits.
os.environ["ATEN_CPU_CAPABILITY"] = "default"
os.environ["MKL_CBWR"] = "COMPATIBLE"
os.environ["OMP_NUM_THREADS"] = "1"

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402

torch.set_num_threads(1)
torch.set_default_dtype(torch.float64)
torch.use_deterministic_algorithms(True)

MASK = (1 << 64) - 1


# ---- the formula both sides share (test/expect.c: formula, formula_token) -----------------------
def mix(name, i):
    """64 hashed bits of (name, i): FNV-1a of the name, then SplitMix64's finalizer."""
    h = 0xCBF29CE484222325
    for byte in name.encode():
        h = (h ^ byte) * 0x100000001B3 & MASK
    z = h + (i + 1) * 0x9E3779B97F4A7C15 & MASK
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
    return z ^ z >> 31


def formula(name, *shape, bits=16, scale=1.0, base=0.0):
    """base + scale * k / 2^(bits-1), k a signed integer of `bits` bits: exact in float, and with
    bits=8 and scale a power of two in bfloat16."""
    half = 1 << bits - 1
    values = [base + scale * (((mix(name, i) >> 64 - bits) - half) / half) for i in range(math.prod(shape))]
    return torch.tensor(values).reshape(shape)


def tokens(name, vocab, *shape):
    return torch.tensor([mix(name, i) % vocab for i in range(math.prod(shape))]).reshape(shape)


# ---- writing ------------------------------------------------------------------------------------
class File:
    """Tensors as text: `tensor NAME SHAPE`, then the values, four C99 hex floats a line."""

    def __init__(self, directory, name, about):
        self.out = open(os.path.join(directory, name + ".txt"), "w", newline="\n")
        self.out.write(f"# {about}\n"
                       f"# dev/record_expectations.py, PyTorch {torch.__version__.split('+')[0]}, "
                       f"Python {platform.python_version()}, float64\n")

    def write(self, name, values):
        values = torch.as_tensor(values).detach()
        shape = "x".join(map(str, values.shape or (1,)))
        self.out.write(f"tensor {name} {shape}\n")
        flat = [float(x).hex() for x in values.flatten()]
        for i in range(0, len(flat), 4):
            self.out.write(" ".join(flat[i:i + 4]) + "\n")

    def write_all(self, prefix, **named):
        for name, values in named.items():
            self.write(f"{prefix}.{name}" if prefix else name, values)


def leaf(tensor):
    return tensor.clone().requires_grad_()


# ---- single operations --------------------------------------------------------------------------
def record_embedding(out):
    B, T, C, V, seq_len = 3, 7, 10, 11, 9
    ids = tokens("embedding.ids", V, B, T)  # few words, so that they repeat
    wte, wpe = leaf(formula("embedding.wte", V, C)), leaf(formula("embedding.wpe", seq_len, C))
    x = F.embedding(ids, wte) + wpe[:T]
    x.backward(formula("embedding.dout", B, T, C))
    out.write_all("", out=x, dwte=wte.grad, dwpe=wpe.grad)
    out.write("out_from_2", F.embedding(ids, wte) + wpe[2:2 + T])


def record_residual_layernorm(out):
    """y = x @ w.T + b + residual, z = layernorm(y): the model's step from a branch back to the
    stream and into the next branch. y's gradient comes from both sides."""
    N, K, C = 13, 9, 20
    x, w, b = leaf(formula("residual.x", N, K)), leaf(formula("residual.w", C, K)), leaf(formula("residual.b", C))
    residual = leaf(formula("residual.residual", N, C))
    lnw, lnb = leaf(formula("residual.lnw", C)), leaf(formula("residual.lnb", C))
    y = F.linear(x, w, b) + residual
    y.retain_grad()
    z = F.layer_norm(y, (C,), lnw, lnb, 1e-5)
    torch.autograd.backward([y, z], [formula("residual.dy", N, C), formula("residual.dz", N, C)])
    rstd = 1 / torch.sqrt(y.var(1, unbiased=False) + 1e-5)
    out.write_all("", y=y, z=z, mean=y.mean(1), rstd=rstd, dy=y.grad, dlnw=lnw.grad, dlnb=lnb.grad,
                  dx=x.grad, dw=w.grad, db=b.grad)


def record_linear(out, N, K, O):
    case = f"{N}x{K}x{O}"
    x, w, b = leaf(formula("linear.x", N, K)), leaf(formula("linear.w", O, K)), leaf(formula("linear.b", O))
    y = F.linear(x, w, b)
    y.backward(formula("linear.dout", N, O))
    out.write_all(case, out=y, dx=x.grad, dw=w.grad, db=b.grad)
    out.write(case + ".out_without_bias", F.linear(x, w))


def record_mlp(out):
    N, C, H = 19, 12, 29
    x, w, b = leaf(formula("mlp.x", N, C)), leaf(formula("mlp.w", H, C)), leaf(formula("mlp.b", H))
    w2 = leaf(formula("mlp.w2", C, H))
    pre = F.linear(x, w, b)
    pre.retain_grad()
    gelu = F.gelu(pre, approximate="tanh")
    y = F.linear(gelu, w2)
    y.backward(formula("mlp.dout", N, C))
    out.write_all("", pre=pre, gelu=gelu, out=y, dpre=pre.grad, dx=x.grad, dw=w.grad, db=b.grad, dw2=w2.grad)


def record_gelu(out):
    """Value and derivative from -8 to 8 in eighths, and far out, where nothing may overflow."""
    for name, points in {"near": [i / 8 for i in range(-64, 65)], "far": [-1e4, -50.0, -16.0, 16.0, 50.0, 1e4]}.items():
        x = leaf(torch.tensor(points))
        y = F.gelu(x, approximate="tanh")
        y.sum().backward()
        out.write_all(name, x=x, out=y, derivative=x.grad)


def attention(q, k, v):
    """(B, NH, T, hs) each -> out alike, log-sum-exp of the scaled scores (B, NH, T)."""
    T = q.shape[-2]
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    scores = scores.masked_fill(torch.ones(T, T, dtype=torch.bool).triu(1), -math.inf)
    return torch.softmax(scores, -1) @ v, torch.logsumexp(scores, -1)


def heads_of(qkv, NH):
    B, T, C3 = qkv.shape
    return [part.reshape(B, T, NH, C3 // 3 // NH).transpose(1, 2) for part in qkv.split(C3 // 3, 2)]


def record_attention(out, B, T, NH, hs):
    C = NH * hs
    qkv = leaf(formula("attention.qkv", B, T, 3 * C, scale=2.0))
    y, lse = attention(*heads_of(qkv, NH))
    y = y.transpose(1, 2).reshape(B, T, C)
    y.backward(formula("attention.dout", B, T, C))
    out.write_all(f"{B}x{T}x{NH}x{hs}", out=y, lse=lse, dqkv=qkv.grad)


def ignore_some(targets, name):
    """Every target whose hash divides by 3 becomes -1."""
    keep = torch.tensor([mix(name, i) % 3 != 0 for i in range(targets.numel())]).reshape(targets.shape)
    return torch.where(keep, targets, torch.tensor(-1))


def record_classifier(out, name, N, C, V, ignored):
    x, wte = leaf(formula("classifier.x", N, C)), leaf(formula("classifier.wte", V, C))
    targets = tokens("classifier.targets", V, N)
    if ignored:
        targets = ignore_some(targets, "classifier.ignored")
    losses = F.cross_entropy(F.linear(x, wte), targets, ignore_index=-1, reduction="none")
    (losses.sum() / (targets >= 0).sum()).backward()
    out.write_all(name, losses=losses, dx=x.grad, dwte=wte.grad)


def record_operations(directory):
    """One file an operation of llmc/ops.h: forward and backward on its own."""
    def file(name, about):
        return File(directory, name, about)

    record_embedding(file("embedding", "token and position embedding"))
    record_residual_layernorm(file("residual", "linear layer + residual, then LayerNorm"))
    out = file("linear", "linear layer with and without bias, several shapes")
    for shape in (37, 20, 29), (3, 300, 5), (150, 5, 7), (1, 1, 1):
        record_linear(out, *shape)
    record_mlp(file("mlp", "linear, GELU, linear"))
    record_gelu(file("gelu", "GELU, tanh form, and its derivative"))
    out = file("attention", "causal attention, several shapes")
    for shape in (2, 1, 3, 8), (2, 2, 3, 8), (3, 7, 2, 5), (2, 33, 3, 8), (1, 11, 1, 64), (1, 200, 1, 4):
        record_attention(out, *shape)
    out = file("classifier", "output matrix, softmax and cross-entropy; gradients of the mean over valid targets")
    record_classifier(out, "dense", 21, 12, 131, ignored=False)
    record_classifier(out, "ignored", 21, 12, 131, ignored=True)
    record_classifier(out, "many", 300, 2, 37, ignored=True)


# ---- the tiny GPT -------------------------------------------------------------------------------
LAYERS, HEADS, CHANNELS, SEQ_LEN, VOCAB = 2, 3, 24, 23, 131
T = 19  # of the rows: shorter than SEQ_LEN, so that some positions are never used


def tiny_weights():
    """Name -> tensor, linear layers (out, in). LayerNorm scales lie in [0, 2), all else is small."""
    C = CHANNELS
    shapes = {"wte.weight": (VOCAB, C), "wpe.weight": (SEQ_LEN, C)}
    for l in range(LAYERS):
        shapes |= {f"h.{l}.{name}": shape for name, shape in {
            "ln_1.weight": (C,), "ln_1.bias": (C,),
            "attn.c_attn.weight": (3 * C, C), "attn.c_attn.bias": (3 * C,),
            "attn.c_proj.weight": (C, C), "attn.c_proj.bias": (C,),
            "ln_2.weight": (C,), "ln_2.bias": (C,),
            "mlp.c_fc.weight": (4 * C, C), "mlp.c_fc.bias": (4 * C,),
            "mlp.c_proj.weight": (C, 4 * C), "mlp.c_proj.bias": (C,)}.items()}
    shapes |= {"ln_f.weight": (C,), "ln_f.bias": (C,)}
    weights = {}
    for name, shape in shapes.items():
        is_scale = "ln_" in name and name.endswith("weight")
        weights[name] = leaf(formula(name, *shape, bits=8, **(
            {"scale": 1.0, "base": 1.0} if is_scale else {"scale": 0.25})))
    return weights


def tiny_logits(w, ids):
    def normed(x, name):
        return F.layer_norm(x, (CHANNELS,), w[name + ".weight"], w[name + ".bias"], 1e-5)

    def linear(x, name):
        return F.linear(x, w[name + ".weight"], w[name + ".bias"])

    x = w["wte.weight"][ids] + w["wpe.weight"][:ids.shape[1]]
    for l in range(LAYERS):
        y, _ = attention(*heads_of(linear(normed(x, f"h.{l}.ln_1"), f"h.{l}.attn.c_attn"), HEADS))
        x = x + linear(y.transpose(1, 2).reshape(x.shape), f"h.{l}.attn.c_proj")
        y = F.gelu(linear(normed(x, f"h.{l}.ln_2"), f"h.{l}.mlp.c_fc"), approximate="tanh")
        x = x + linear(y, f"h.{l}.mlp.c_proj")
    return F.linear(normed(x, "ln_f"), w["wte.weight"])


def tiny_losses(w, ids, targets):
    logits = tiny_logits(w, ids)
    losses = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-1, reduction="none")
    return logits, losses.reshape(ids.shape)


def tiny_rows(name, rows):
    """Inputs and targets: `rows` windows of T + 1 tokens."""
    windows = tokens(name, VOCAB, rows, T + 1)
    return windows[:, :-1], windows[:, 1:]


def gradients(w, loss):
    return dict(zip(w, torch.autograd.grad(loss, list(w.values()))))


def record_tiny(directory):
    w = tiny_weights()

    out = File(directory, "gpt2_five", "tiny GPT, five rows as one batch: loss = mean over 95 tokens")
    ids, targets = tiny_rows("tiny.rows", 5)
    logits, losses = tiny_losses(w, ids, targets)
    five = gradients(w, losses.mean())
    out.write_all("", logits_of_row_0=logits[0], losses=losses)
    for name, g in five.items():
        out.write(name, g)

    out = File(directory, "gpt2_equal", "the five rows split 2 + 3 and WRONGLY weighted 1/2 and 1/2")
    parts = [gradients(w, tiny_losses(w, ids[rows], targets[rows])[1].mean()) for rows in (slice(0, 2), slice(2, 5))]
    for name in w:
        out.write(name, (parts[0][name] + parts[1][name]) / 2)

    out = File(directory, "gpt2_four", "the first four of these rows as one batch: loss = mean over 76 tokens")
    _, losses = tiny_losses(w, ids[:4], targets[:4])
    out.write("losses", losses)
    for name, g in gradients(w, losses.mean()).items():
        out.write(name, g)

    out = File(directory, "gpt2_ignored", "three rows, about a third of the targets and all of row 1 ignored")
    ids, targets = tiny_rows("tiny.ignored.rows", 3)
    targets = ignore_some(targets, "tiny.ignored")
    targets[1] = -1
    _, losses = tiny_losses(w, ids, targets)
    valid = (targets >= 0).sum()
    out.write_all("", losses=losses, valid=valid)
    for name, g in gradients(w, losses.sum() / valid).items():
        out.write(name, g)
    return five


# ---- clipping, AdamW, training --------------------------------------------------------------------
def clipped(gradients_, threshold):
    """(norm, clipped gradients) by torch.nn.utils.clip_grad_norm_ itself."""
    params = [torch.nn.Parameter(torch.zeros_like(g)) for g in gradients_]
    for p, g in zip(params, gradients_):
        p.grad = g.clone()
    norm = torch.nn.utils.clip_grad_norm_(params, threshold, foreach=False)
    return norm, [p.grad for p in params]


def record_clip(directory, five):
    out = File(directory, "clip", "torch.nn.utils.clip_grad_norm_: norm before clipping, then the clipped gradient")
    cases = {"3_4": [3.0, 4.0], "at_threshold": [0.6, 0.8], "below": [0.3, 0.4], "zero": [0.0, 0.0],
             "inf": [math.inf, 1.0], "nan": [math.nan, 1.0]}
    for name, g in cases.items():
        norm, (g,) = clipped([torch.tensor(g)], 1.0)
        out.write_all(name, norm=norm, gradient=g)
    names = list(five)
    for name, threshold in {"model_above": 0.25, "model_below": 64.0}.items():
        norm, gs = clipped(list(five.values()), threshold)
        out.write_all(name, norm=norm, gradient=gs[names.index("ln_f.weight")])


ADAMW_STEPS = 10


def adamw_rate(step):
    return (1 + step % 4) * 2.0 ** -7


def record_adamw_case(out, name, decay, clip, gradient_scale, eps=1e-8):
    """Ten steps of torch.optim.AdamW on a matrix (decayed) and a vector (not)."""
    matrix, vector = (torch.nn.Parameter(formula("adamw.matrix", 5, 7)), torch.nn.Parameter(formula("adamw.vector", 7)))
    optimizer = torch.optim.AdamW([{"params": [matrix], "weight_decay": decay}, {"params": [vector], "weight_decay": 0.0}],
                                  betas=(0.9, 0.95), eps=eps, foreach=False, fused=False)
    matrices, vectors, norms = [], [], []
    for step in range(ADAMW_STEPS):
        matrix.grad = formula(f"adamw.dmatrix.{step}", 5, 7, scale=gradient_scale)
        vector.grad = formula(f"adamw.dvector.{step}", 7, scale=gradient_scale)
        if clip:
            norms.append(torch.nn.utils.clip_grad_norm_([matrix, vector], clip * (step + 1), foreach=False))
        for group in optimizer.param_groups:
            group["lr"] = adamw_rate(step)
        optimizer.step()
        matrices.append(matrix.detach().clone())
        vectors.append(vector.detach().clone())
    if clip:
        out.write(name + ".norm", torch.stack(norms))
    state = optimizer.state
    out.write_all(name, matrix=torch.stack(matrices), vector=torch.stack(vectors),
                  matrix_m=state[matrix]["exp_avg"], matrix_v=state[matrix]["exp_avg_sq"],
                  vector_m=state[vector]["exp_avg"], vector_v=state[vector]["exp_avg_sq"])


def record_adamw(directory):
    out = File(directory, "adamw", "torch.optim.AdamW over ten steps: weights after each step, moments at the end")
    record_adamw_case(out, "decay", decay=0.1, clip=0, gradient_scale=1.0)
    record_adamw_case(out, "no_decay", decay=0.0, clip=0, gradient_scale=1.0)
    record_adamw_case(out, "clip", decay=0.1, clip=0.5, gradient_scale=1.0)
    record_adamw_case(out, "zero_gradient", decay=0.1, clip=0, gradient_scale=0.0)
    record_adamw_case(out, "tiny_gradient", decay=0.1, clip=0, gradient_scale=2.0 ** -28)
    record_adamw_case(out, "tiny_gradient_tiny_eps", decay=0.1, clip=0, gradient_scale=2.0 ** -28, eps=1e-16)


TRAINING_STEPS = 6


def record_training(directory):
    """Six whole updates of the tiny GPT. eps is 1e-4: a key's bias cannot change a softmax, so its gradient
    is rounding alone, and with 1e-8 a float build would blow that rounding up to a real step."""
    out = File(directory, "training", "tiny GPT, six updates: loss, norm before clipping, rate; weights at the end")
    w = tiny_weights()
    params = {name: torch.nn.Parameter(value.detach().clone()) for name, value in w.items()}
    groups = [[p for p in params.values() if p.dim() >= 2], [p for p in params.values() if p.dim() < 2]]
    optimizer = torch.optim.AdamW([{"params": groups[0], "weight_decay": 0.1}, {"params": groups[1], "weight_decay": 0.0}],
                                  betas=(0.9, 0.95), eps=1e-4, foreach=False, fused=False)
    losses, norms, rates = [], [], []
    for step in range(TRAINING_STEPS):
        ids, targets = tiny_rows(f"training.rows.{step}", 5)
        optimizer.zero_grad()
        loss = tiny_losses(params, ids, targets)[1].mean()
        loss.backward()
        norms.append(torch.nn.utils.clip_grad_norm_(list(params.values()), 1.0, foreach=False))
        rates.append(rate("cosine", 2, 6, step, 2.0 ** -6, 2.0 ** -9))
        for group in optimizer.param_groups:
            group["lr"] = rates[-1]
        optimizer.step()
        losses.append(loss.detach())
    out.write_all("", losses=torch.stack(losses), norms=torch.stack(norms), rates=rates)
    for name, p in params.items():
        out.write(name, p)


# ---- schedules ------------------------------------------------------------------------------------
def rate(kind, W, S, i, high=6e-4, low=6e-5):
    """The course's formula, and the three other shapes as llmc/optimizer/schedule.h states them."""
    if i < W:
        return high * (i + 1) / W
    if kind == "constant":
        return high
    if i > S:
        return low
    r = (i - W) / (S - W) if S > W else 0.0
    if kind == "linear":
        return high + r * (low - high)
    if kind == "wsd":
        return high if r <= 0.8 else high + (r - 0.8) / 0.2 * (low - high)
    return low + 0.5 * (1.0 + math.cos(math.pi * r)) * (high - low)


def record_schedule(directory):
    out = File(directory, "schedule", "learning rates from 6e-4 to 6e-5 at step indices; names say kind, W and S")
    for kind in "cosine", "linear", "constant", "wsd":
        for W, S in (715, 19073), (4, 20), (0, 20), (20, 20), (0, 1), (1, 1), (30, 20):
            edges = {0, 1, W - 1, W, W + 1, (W + S) // 2, W + (S - W) * 4 // 5, S - 1, S, S + 1, 10 * S + 10 * W, 10 ** 12}
            steps = sorted(i for i in edges if i >= 0)
            out.write_all(f"{kind}.{W}.{S}", steps=steps, rates=[rate(kind, W, S, i) for i in steps])


def main():
    directory = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "..", "test", "expectations")
    os.makedirs(directory, exist_ok=True)
    record_operations(directory)
    five = record_tiny(directory)
    record_clip(directory, five)
    record_adamw(directory)
    record_training(directory)
    record_schedule(directory)


if __name__ == "__main__":
    main()
