#!/bin/sh
# registers.sh PTXAS.TXT: a table of every kernel's registers, shared memory and spills for each architecture, from
# what `nvcc -Xptxas -v` printed (the build keeps it in build/cuda_*/ptxas.txt). Exit code 1 when
# any spills or has a stack, when attention with heads of 64 has fewer than 2 blocks on an SM, and when there is none.
c=$(command -v c++filt || echo cat)
awk '
# Blocks of attention on an SM, of 4 warps: by registers (granted to a warp in units of 256) and by shared memory, of
# which each block has 1 KB more. Dynamic shared memory, in KB, as flash.cuh and flash_backward.cuh ask for it.
BEGIN {
    split("forward_64 40 keys_64 48 queries_64 48 forward_128 80 keys_128 48 queries_128 64", word, " ")
    for (i = 1; i < 12; i += 2) dynamic[word[i]] = word[i + 1]
    split("sm_80 164 sm_86 100 sm_89 100 sm_90 228", word, " ")
    for (i = 1; i < 8; i += 2) memory[word[i]] = word[i + 1]
}
function blocks(    name, by_registers, by_memory) {
    if (!(arch in memory) || !match(kernel, /flash_[a-z_]*_kernelILi(64|128)E/)) return ""
    name = substr(kernel, RSTART, RLENGTH)
    gsub(/^flash_(backward_)?|_kernelILi|E$/, " ", name)
    split(name, word, " ")
    by_registers = int(65536 / (4 * int((registers * 32 + 255) / 256) * 256))
    by_memory = int(memory[arch] / (dynamic[word[1] "_" word[2]] + 1))
    if (by_memory < by_registers) by_registers = by_memory
    if (word[2] == 64 && by_registers < 2) bad = 1
    return ", " by_registers " blocks an SM"
}
/Compiling entry function/ {
    split($0, part, "\047")
    kernel = part[2]
    arch = part[4]
}
/bytes spill stores/ { spill = $1 + $5 + $9 }
/Used [0-9]+ registers/ {
    match($0, /Used [0-9]+/)
    registers = substr($0, RSTART + 5, RLENGTH - 5)
    shared = match($0, /[0-9]+ bytes smem/) ? substr($0, RSTART, RLENGTH - 11) : 0
    printf "%s %s %3d registers, %5d bytes of static shared memory, %d bytes of stack and spills%s\n", arch, kernel, registers, shared, spill, blocks()
    count++
    if (spill > 0) bad = 1
}
END { exit bad || !count }' "$1" >"${1%.txt}.table"
code=$?
sort "${1%.txt}.table" | $c | sed 's/(.*) / /; s/void //'
exit $code
