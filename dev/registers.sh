#!/bin/sh
# registers.sh PTXAS.TXT: a table of every kernel's registers, shared memory and spills for each architecture, from
# what `nvcc -Xptxas -v` printed (the build keeps it in build/cuda_*/ptxas.txt). Exit code 1 when
# any spills or has a stack, and when there is none.
c=$(command -v c++filt || echo cat)
awk '
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
    printf "%s %s %3d registers, %5d bytes of static shared memory, %d bytes of stack and spills\n", arch, kernel, registers, shared, spill
    count++
    if (spill > 0) bad = 1
}
END { exit bad || !count }' "$1" >"${1%.txt}.table"
code=$?
sort "${1%.txt}.table" | $c | sed 's/(.*) / /; s/void //'
exit $code
