#!/bin/sh
# cli_make.sh: the build itself: what the choices of make mean, and that a change rebuilds what depends on it.
. test/cli.sh
unset MAKEFLAGS MFLAGS MAKELEVEL

# ---- the choice of kernels
check "make KERNELS=plain links the plain loops" prints 'train_gpt2_plain' make -n BUILD="$dir/made" KERNELS=plain train_gpt2
refused() { ! make -n KERNELS=fast train_gpt2 >"$dir/out" 2>&1 && cat "$dir/out"; }
check "make KERNELS=fast names the two that there are" says 'KERNELS=fast: is cpu or plain' refused
finish cli_make
