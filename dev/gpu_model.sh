#!/bin/sh
# gpu_model.sh: times of the CUDA kernels in a micro-step, by calculation. It is a model, not a measurement: counts of
# operations, bytes and instructions, with a card's figures and efficiencies that were estimated, not measured.
#   sh dev/gpu_model.sh [CARD=h200] [B=64] [T=1024] [L=12] [C=768] [NH=12] [V=50257] [KERNELS=now]
# CARD: h200 h100 a100 4090. KERNELS: now; first, before attention, classifier, embedding and LayerNorm were made faster;
# cudnn: llm.c with cuDNN's attention, which keeps all logits and fuses no GELU.
# Rules: a matrix product takes its FLOPs at `gemm` of the peak, and the products that are written to few tiles at
# `narrow`; what reads and writes memory takes its bytes at `stream` of the bandwidth; attention takes the instructions
# of a tile and warp (counted in sm_90 code by nvdisasm) at a share of the four that an SM issues in a clock, but its FLOPs at
# no more than `mma` of the peak. With 2, 3 and 4 blocks an SM that share is 0.52, 0.60, 0.65; dev/registers.sh prints blocks.
for setting in "$@"; do
    case $setting in
    CARD=* | B=* | T=* | L=* | C=* | NH=* | V=* | KERNELS=*) ;;
    *) echo "gpu_model.sh: '$setting' is not a setting; the settings are CARD B T L C NH V KERNELS" >&2; exit 2 ;;
    esac
done
awk 'BEGIN {
    set["CARD"] = "h200"; set["KERNELS"] = "now"
    set["B"] = 64; set["T"] = 1024; set["L"] = 12; set["C"] = 768; set["NH"] = 12; set["V"] = 50257
    for (i = 1; i < ARGC; i++) { split(ARGV[i], pair, "="); set[pair[1]] = pair[2] }
    # card: SMs, GHz, dense bf16 TFLOP/s, TB/s, gemm, narrow, mma; the last three are shares of the peak
    split("132 1.755 989 4.8 0.655 0.40 0.55", h200); split("132 1.755 989 3.35 0.655 0.40 0.55", h100)
    split("108 1.41 312 2.04 0.80 0.55 0.80", a100); split("128 2.52 165 1.008 0.85 0.60 0.85", rtx)
    known = 1
    if (set["CARD"] == "h200") for (i in h200) card[i] = h200[i]
    else if (set["CARD"] == "h100") for (i in h100) card[i] = h100[i]
    else if (set["CARD"] == "a100") for (i in a100) card[i] = a100[i]
    else if (set["CARD"] == "4090") for (i in rtx) card[i] = rtx[i]
    else known = 0
    k = set["KERNELS"]
    if (k != "now" && k != "first" && k != "cudnn") known = 0
    for (s in set) if (s != "CARD" && s != "KERNELS" && !(set[s] ~ /^[0-9]+$/ && set[s] > 0)) known = 0
    if (known && (set["C"] % set["NH"] || set["C"] / set["NH"] != 64)) known = 0
    if (!known) {
        print "gpu_model.sh: CARD is h200, h100, a100 or 4090; KERNELS now, first or cudnn; the others are numbers above 0, with C = 64 NH" > "/dev/stderr"
        exit 2
    }
    B = set["B"]; T = set["T"]; L = set["L"]; C = set["C"]; NH = set["NH"]; V = set["V"]
    N = B * T; Vp = int((V + 127) / 128) * 128
    SMs = card[1]; GHz = card[2]; peak = card[3] * 1e12; bandwidth = card[4] * 1e12 * 0.83 # stream
    X = N * C * 2; Z = N * Vp * 2 # bytes: one activation, all logits
    printf "a model, not a measurement: %s, kernels %s, B %d, T %d, L %d, C %d, NH %d, V %d\n", set["CARD"], k, B, T, L, C, NH, V
    printf "%-26s %6s %10s %10s %9s\n", "kernels", "count", "GFLOP", "MB", "ms"

    memory("embedding forward", 1, 2 * X)
    memory("LayerNorm forward", 2 * L + 1, 2 * X)
    product("qkv forward", L, 3, 4, 0); product("proj forward", L, 1, 3, 0)
    product("fc forward", L, 4, 9, 0); product("fcproj forward", L, 4, 6, 0)
    if (k == "cudnn") memory("GELU forward", L, 8 * X * 0.9)
    attention("attention forward", 936, 530, 0.65, 0.65, 0.24, 2)
    logits("logits", k == "first" ? 0.935 : 0.95)
    memory("classifier", 1, k == "first" ? 2.95 * Z : k == "cudnn" ? 2.45 * Z : 2 * Z)
    logits("logits, dx", k == "first" ? 0.723 : 0.95)
    logits("logits, dW", k == "first" ? 0.815 : 0.93)
    product("dW fcproj", L, 4, 5, 0.91); product("dW fc", L, 4, 5, 0.91); product("dW qkv", L, 3, 4, 0.91)
    narrow("dW proj", L)
    product("dx fcproj (and GELU)", L, 4, 9, 0.91); product("dx fc", L, 4, 5, 0)
    product("dx qkv", L, 3, 4, 0); product("dx proj", L, 1, 2, 0)
    if (k == "cudnn") { memory("GELU backward", L, 12 * X * 0.9); memory("bias sums", L, 9 * X * 0.9) }
    memory("LayerNorm backward", 2 * L + 1, k == "first" ? 9.1 * X : k == "cudnn" ? 5 * X : 4.1 * X)
    if (k != "cudnn") memory("attention delta", L, k == "first" ? 5 * X : 2.1 * X)
    if (k == "cudnn") attention("attention backward", 0, 0, 0, 0, 0.287, 5)
    else {
        attention("attention dK, dV", 1398, 860, 0.52, 0.52, 0, 0)
        attention("attention dQ", 1229, 560, 0.57, 0.60, 0, 0)
    }
    if (k == "first") { # N^2 comparisons by 34 instructions for each 4, and the most frequent id row by row
        row("embedding sort", 1, 0, 0, (N * N / 4 * 34 / 32) / (SMs * 4 * GHz * 1e9) * 1e3)
        row("embedding backward", 1, 0, X, 0.04 * N * 0.65e-3)
    } else memory("embedding backward", 1, 3 * X)
    if (k != "cudnn") memory("exact sums", 1, 20 * parameters() * (k == "first" ? 1.4 : 1))
    printf "%-26s %6s %10.0f %10.0f %9.1f\n", "micro-step", "", flops / 1e9, bytes / 1e6, total
    printf "%.0f tokens/s in micro-steps, %.1f %% of the peak; a model, not a measurement\n", N / total * 1e3, flops / (total * 1e-3) / peak * 100
}
function parameters() { return Vp * C + T * C + L * (12 * C * C + 13 * C) + 2 * C }
function row(name, count, flop, byte, ms) { # of all `count` together
    flops += flop; bytes += byte; total += ms
    printf "%-26s %6d %10.0f %10.0f %9.2f\n", name, count, flop / 1e9, byte / 1e6, ms
}
function memory(name, count, byte) { row(name, count, 0, count * byte, count * byte / bandwidth * 1e3) }
function larger(a, b) { return a > b ? a : b }
# N rows, widths C and `wide` C; `passes` of X over memory; `share`: of the rate of the best products, 0: all
function product(name, count, wide, passes, share,    flop) {
    flop = count * 2 * N * C * wide * C
    row(name, count, flop, count * passes * X, larger(flop / (peak * card[5] * (share ? share : 1)), count * passes * X / bandwidth) * 1e3)
}
function narrow(name, count,    flop) {
    flop = count * 2 * N * C * C
    row(name, count, flop, count * 2 * X, larger(flop / (peak * card[6]), count * 2 * X / bandwidth) * 1e3)
}
function logits(name, share) {
    row(name, 1, 2 * N * C * Vp, Z, 2 * N * C * Vp / (peak * card[5] * share) * 1e3)
}
# Tiles of 64 x 64 on and below the diagonal, 4 warps each; cuDNN: a share of the peak, for `products` of N T C.
function attention(name, then, now, share_then, share_now, share_of_peak, products,    tiles, instructions, flop, byte, seconds) {
    flop = L * N * T * C * (k == "cudnn" ? products : name ~ /forward/ ? 2 : name ~ /dK/ ? 4 : 3)
    if (k == "cudnn") { row(name, L, flop, L * 8 * X, flop / (peak * share_of_peak) * 1e3); return }
    tiles = int((T + 63) / 64)
    instructions = L * B * NH * tiles * (tiles + 1) / 2 * 4 * (k == "first" ? then : now)
    byte = L * (k == "first" ? 20 : 6) * X
    seconds = larger(instructions / (SMs * 4 * GHz * 1e9 * (k == "first" ? share_then : share_now)), byte / bandwidth)
    row(name, L, flop, byte, larger(seconds, flop / (peak * card[7])) * 1e3)
}' "$@"
