#!/bin/sh
# cli_build.sh: the ways in which people build and install: an archive without .git, a path with blanks,
# another working directory, many jobs, flags of their own, no Open MPI yet. Whole builds take time: they are
# made once, not for every set of other settings.
. test/cli.sh

# ---- --version
check "--version says which program this is" prints '^train_gpt2 [0-9]+\.[0-9]+$' "$program" --version
check "... its commit" prints '^commit +([0-9a-f]{7,40}(-dirty)?|unknown)$' "$program" --version
check "... its compiler" prints '^compiler +(gcc|clang) [0-9]+\.' "$program" --version
check "... its instruction set" prints '^device +CPU, (AVX-512|AVX2|NEON|no fused multiply-add), float32' "$program" --version
mpi='Open MPI [0-9]|of the standard [0-9]'
grep -q USE_MPI "$build/flags" || mpi=none
check "... its MPI" prints "^MPI +($mpi)" "$program" --version

# ---- a processor that can do less than the program was built for
if grep -q -e '-march=native' -e '-march=x86-64-v[34]' "$build/flags" && grep -qw avx2 /proc/cpuinfo && [ "$(uname -m)" = x86_64 ]; then
    refuses 1 'which this one does not have (so says TRAIN_GPT2_ARCH); build it on this machine, or for all with make ARCH=portable' \
        "built for a newer processor it ends with a line" env TRAIN_GPT2_ARCH=x86-64-v2 "$program" --version
    refuses 1 'TRAIN_GPT2_ARCH is "avx2", expected x86-64-v1 to 4; unset it' \
        "... so it does for a level that there is not" env TRAIN_GPT2_ARCH=avx2 "$program" --version
    # The address sanitizer's own memory is not to be had in the emulated process.
    if command -v qemu-x86_64 >/dev/null 2>&1 && ! nm "$program" | grep -q __asan_init; then
        old() { OMP_WAIT_POLICY=passive qemu-x86_64 -cpu Nehalem "$program" --version 2>"$dir/old"; [ $? -eq 1 ] && cat "$dir/old"; }
        check "... and on an old processor" says "which this one does not have; build it" old
    fi
else
    skip "built for any processor, or one without AVX2: a processor that can do less"
fi

# ---- fast math
unset MAKEFLAGS MFLAGS MAKELEVEL BUILD CC ARCH SANITIZE OPENMP MPI OPTIMIZE CFLAGS # choices of who runs this
object_with() { # FLAG: compiles one file with it
    make -s BUILD="$dir/fast" MPI=0 CFLAGS="$1" "$dir/fast/cpu_float/gelu.o"
}
check "a file is compiled without fast math" object_with -O1
for flag in -Ofast -ffast-math -funsafe-math-optimizations -ffinite-math-only; do
    if ! cc $flag -dM -E - </dev/null | grep -qE '__(FAST|ASSOCIATIVE|RECIPROCAL)_MATH__|__FINITE_MATH_ONLY__ 1'; then
        skip "this compiler does not tell of $flag"
        continue
    fi
    object_with $flag >"$dir/out" 2>&1
    check "a build with $flag stops" test $? -ne 0
    check "... and says why" grep -q 'with fast math NaN would pass for a number' "$dir/out"
done
refused() { ! object_with -ffast-math 2>&1; }
check "... at once" says 'leave such options out of CFLAGS' refused

# ---- make setup on a machine without Open MPI: what it installs is used by the same make. The machine has
# all tools but these, an MPI library of one empty function, and an apt-get that brings mpicc and mpirun.
mkdir "$dir/bin" "$dir/mpi"
IFS=:
for place in $PATH; do
    case $place in *ccache*) continue ;; esac # it would look for the compiler in here
    for tool in "$place"/*; do [ -e "$dir/bin/${tool##*/}" ] || ln -s "$tool" "$dir/bin/" 2>/dev/null; done
done
unset IFS
rm -f "$dir"/bin/mpi* "$dir"/bin/gnuplot* "$dir"/bin/apt-get "$dir"/bin/sudo "$dir"/bin/id "$dir"/bin/nvcc
echo 'int MPI_Init(int *argc, char ***argv);' >"$dir/mpi/mpi.h"
echo 'int MPI_Init(int *argc, char ***argv) { return !argc + !argv; }' >"$dir/mpi/mpi.c"
check "a library for the trial" "${CC:-cc}" -shared -fPIC -o "$dir/mpi/libmpi.so" "$dir/mpi/mpi.c"
tool() { # NAME LINE...
    printf '#!/bin/sh\n' >"$dir/bin/$1"
    shift_name=$1
    shift
    printf '%s\n' "$@" >>"$dir/bin/$shift_name"
    chmod +x "$dir/bin/$shift_name"
}
tool id 'echo 0'
tool apt-get "cp '$dir/mpi/mpicc' '$dir/bin/mpicc'" "cp '$dir/mpi/mpicc' '$dir/bin/mpirun'"
printf '#!/bin/sh\ncase $1 in *compile) echo "-I%s/mpi" ;; *) echo "-L%s/mpi -lmpi" ;; esac\n' "$dir" "$dir" >"$dir/mpi/mpicc"
chmod +x "$dir/mpi/mpicc"
check "there is no Open MPI at first" not env PATH="$dir/bin" sh -c 'command -v mpicc >/dev/null || exit 1'
check "make setup and a target in one command" env PATH="$dir/bin" make -s -j4 BUILD="$dir/bare" setup "$dir/bare/flags"
check "... use what setup has installed" grep -q USE_MPI "$dir/bare/flags"

# ---- whole builds
if [ "${build##*/}" = build ]; then
    copy="$dir/a place/train gpt2"
    mkdir -p "$copy"
    tar -cf "$dir/source.tar" Makefile README.md LICENSE train_gpt2.c train_gpt2.cu llmc dev test
    check "the source as an archive, without .git" tar -xf "$dir/source.tar" -C "$copy"
    quietly() { # nothing but what is being made
        "$@" >"$dir/out" 2>&1 || { cat "$dir/out"; return 1; }
        ! grep -vE '^ +(cc|link) ' "$dir/out"
    }
    check "make -j8 CFLAGS=-O3 -C 'a place' builds without a warning" quietly make -s -j8 -C "$copy" CFLAGS=-O3
    check "... a program that trains in another directory" says "trained 2 updates" \
        sh -c 'cd "$1" && "$2/train_gpt2" --steps 2 --val-every 0 --sample-every 0 --out trained' - "$dir" "$copy"
    check "... and knows no commit" says "commit     unknown" "$copy/train_gpt2" --version
    stage="$dir/a stage"
    check "make install into DESTDIR" make -s -C "$copy" CFLAGS=-O3 install PREFIX=/opt/gpt DESTDIR="$stage"
    check "... puts the program in its place" says "Usage: train_gpt2" "$stage/opt/gpt/bin/train_gpt2" --help
    check "... the licence" same_files LICENSE "$stage/opt/gpt/share/doc/train_gpt2/LICENSE"
    page=$stage/opt/gpt/share/man/man1/train_gpt2.1
    check "... and a manual page" grep -q '^\.TH TRAIN_GPT2 1' "$page"
    options() { grep -oE '^  --(\[no-\])?[a-z0-9-]+'; }
    "$program" --help | options >"$dir/options"
    sed 's/\\-/-/g' "$page" | options >"$dir/documented"
    check "... which has every option" same_files "$dir/options" "$dir/documented"
    check "... and nothing else" test "$(find "$stage" -type f | wc -l)" -eq 4
    if command -v man >/dev/null 2>&1; then
        check "... that man can show" says "--total-batch N" sh -c 'MANWIDTH=120 man -P cat -l "$1" | sed "s/.\x08//g"' - "$page"
    fi

    echo 'int main(void) { return 0; }' >"$dir/empty.c"
    if "${CC:-cc}" -static -o "$dir/empty" "$dir/empty.c" -lm 2>/dev/null; then
        check "LDFLAGS=-static builds" make -s -j2 BUILD="$dir/static" LDFLAGS=-static "$dir/static/train_gpt2"
        check "... without MPI" says "MPI        none" "$dir/static/train_gpt2" --version
        check "... a program that trains" says "trained 2 updates" "$dir/static/train_gpt2" --steps 2 --val-every 0 \
            --sample-every 0 --out "$dir/static_run"
    else
        skip "no static C library: LDFLAGS=-static"
    fi
fi

finish cli_build
